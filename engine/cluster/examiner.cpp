#include "engine/cluster/examiner.h"

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "engine/cluster/protocol.h"
#include "engine/processes/addresses.h"
#include "engine/system/clock.h"
#include "engine/system/limits.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

constexpr double kResolving_s = 6;
constexpr double kLink_s = 8;

// Outlives who asked: a thread that waits for a name server cannot be ended.
struct Resolution {
  std::mutex mutex;
  std::condition_variable done;
  std::map<std::string, std::vector<std::string>> addresses;
  std::size_t left = 0;
};

// What each name resolves to here; without addresses those that do not, or not in time, as where no
// name server answers. All names are asked for at the same time.
std::map<std::string, std::vector<std::string>> resolve_names(
    const std::vector<std::string>& names) {
  const auto resolution = std::make_shared<Resolution>();
  for (const std::string& name : names) {
    resolution->addresses[name];
  }
  resolution->left = resolution->addresses.size();
  for (const auto& [name, none] : std::map(resolution->addresses)) {
    std::thread([resolution, name = name] {
      std::vector<std::string> found = addresses_of_name(name);
      const std::lock_guard lock(resolution->mutex);
      resolution->addresses[name] = std::move(found);
      --resolution->left;
      resolution->done.notify_one();
    }).detach();
  }
  std::unique_lock lock(resolution->mutex);
  resolution->done.wait_for(
      lock, std::chrono::duration<double>(kResolving_s), [&] { return resolution->left == 0; });
  return resolution->addresses;
}

void answer(const of_device::Answer& message) {
  fmt::print("{}\n", line_of(message));
  std::fflush(stdout);
}

class Examinee {
 public:
  explicit Examinee(const std::string& version) : version_(version) {}

  void take(const to_device::Facts& question) { answer(look_at_device(question.folder, version_)); }

  void take(const to_device::Resolve& question) {
    of_device::Resolved resolved{resolve_names(question.names), {}};
    for (const InterfaceAddress& one : interface_addresses()) {
      if (one.is_up && !one.is_loopback && !one.address.empty()) {
        std::error_code error;
        resolved.interfaces.push_back(
            {one.address,
             one.interface,
             negotiated_bits_per_s(one.interface),
             std::filesystem::exists("/sys/class/net/" + one.interface + "/wireless", error)});
      }
    }
    answer(resolved);
  }

  void take(const to_device::Time& /*question*/) { answer(of_device::Time{time_of_day_s()}); }

  void take(const to_device::Listen& question) {
    std::optional<LinkListener> listener;
    try {
      listener.emplace(question.address);
    } catch (const InputError& error) {
      answer(of_device::Listening{0, error.what()});
      return;
    }
    answer(of_device::Listening{listener->port(), ""});
    (void)listener->serve(question.token, kLink_s);
  }

  void take(const to_device::Connect& question) {
    try {
      answer(
          of_device::Tried{try_link(question.address, question.port, question.token, kLink_s), ""});
    } catch (const InputError& error) {
      answer(of_device::Tried{{}, error.what()});
    }
  }

 private:
  const std::string& version_;
};

}  // namespace

void run_examiner(const std::string& version) {
  Examinee examinee(version);
  for (std::string line; std::getline(std::cin, line);) {
    if (const auto question = question_in(line)) {
      std::visit([&](const auto& one) { examinee.take(one); }, *question);
    }
  }
}

}  // namespace tessera::engine
