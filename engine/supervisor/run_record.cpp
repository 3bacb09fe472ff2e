#include "engine/supervisor/run_record.h"

#include <algorithm>
#include <exception>
#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/files/json_text.h"
#include "engine/supervisor/message_stream.h"
#include "engine/supervisor/state_folder.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

namespace {

constexpr Index kMostGenerations = 1'000'000'000;  // one more is a number still

// A record names programs that are run as this user: that of somebody else, put into a folder that
// many can write to, would be theirs to choose. None where it cannot be read.
std::optional<std::string> text_of_own_record(const std::filesystem::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat found {};
  if (!file.is_open() || ::fstat(file.number(), &found) != 0) {
    return std::nullopt;
  }
  if (found.st_uid != ::geteuid() && found.st_uid != 0) {
    throw InputError(
        fmt::format("{}: belongs to another user, and names commands that would be run as you: "
                    "copy the folder if you trust what is in it",
                    printable(path.string())));
  }
  if ((found.st_mode & S_IWOTH) != 0) {
    throw InputError(
        fmt::format("{}: every user may change it, and it names commands that would be run as you: "
                    "look at it, then take that right away (chmod o-w)",
                    printable(path.string())));
  }
  // The file that was looked at, whatever has the name by now.
  return read_json_text(fmt::format("/proc/self/fd/{}", file.number()));
}

// Throws a nlohmann::json::exception where it is none, or too large.
Index whole_number_in(const nlohmann::json& value, Index most) {
  const auto number = value.is_number_integer() ? value.get<Index>() : Index{-1};
  if (number < 0 || number > most) {
    throw nlohmann::json::out_of_range::create(401, "number", &value);
  }
  return number;
}

}  // namespace

nlohmann::json to_json(const SupervisorRecord& record) {
  nlohmann::json hosts = nlohmann::json::array();
  for (const Host& host : record.hosts) {
    hosts.push_back({{"name", host.name}, {"ranks", host.ranks}});
  }
  return {{"run_number", record.run_number},
          {"words", record.words},
          {"typed", record.typed},
          {"hosts", hosts},
          {"folder", record.folder},
          {"run_folder", record.run_folder},
          {"remote_shell", record.remote_shell},
          {"generation", record.generation},
          {"supervisor", record.supervisor},
          {"last_step", record.last_step},
          {"witness", record.witness},
          {"interface", record.interface},
          {"leader", record.leader}};
}

SupervisorRecord read_supervisor_record(const std::filesystem::path& file) {
  const auto text = text_of_own_record(file);
  if (!text) {
    throw InputError(fmt::format("{}: there is no record of a run that `tessera run` has begun",
                                 printable(file.string())));
  }
  SupervisorRecord record;
  try {
    const nlohmann::json read = nlohmann::json::parse(*text);
    record.run_number = read.at("run_number").get<std::string>();
    record.words = read.at("words").get<std::vector<std::string>>();
    record.folder = read.at("folder").get<std::string>();
    record.run_folder = read.at("run_folder").get<std::string>();
    record.remote_shell = read.at("remote_shell").get<std::string>();
    record.generation = whole_number_in(read.at("generation"), kMostGenerations);
    record.supervisor = read.value("supervisor", std::string());
    record.witness = read.value("witness", std::string());  // what old files lack, as the next two
    record.interface = read.value("interface", std::string());
    record.typed = read.value("typed", std::vector<std::string>());
    record.leader = read.value("leader", std::string());
    for (const nlohmann::json& host : read.at("hosts")) {
      record.hosts.push_back(
          {host.at("name").get<std::string>(),
           static_cast<int>(whole_number_in(host.at("ranks"), kMostRanksOfHost))});
    }
    std::vector<int> all(record.hosts.size());
    std::iota(all.begin(), all.end(), 0);
    record.last_step = read.value("last_step", all);
  } catch (const nlohmann::json::exception&) {
    throw InputError(printable(file.string()) + " is damaged");
  }
  const bool sound =
      is_run_number(record.run_number) && !record.words.empty() && !record.hosts.empty() &&
      record.hosts.size() <= kMostHosts &&
      (record.supervisor.empty() || is_run_number(record.supervisor)) &&
      (record.leader.empty() || is_host_name(record.leader)) &&
      (record.witness.empty() || is_host_name(record.witness)) &&
      std::all_of(record.last_step.begin(),
                  record.last_step.end(),
                  [&](int place) { return place >= 0 && place < std::ssize(record.hosts); }) &&
      std::all_of(record.hosts.begin(), record.hosts.end(), [](const Host& host) {
        return is_host_name(host.name) && host.ranks >= 1;
      });
  if (!sound) {
    throw InputError(printable(file.string()) + " is damaged");
  }
  return record;
}

SupervisorId supervisor_of(const std::filesystem::path& file) {
  try {
    const SupervisorRecord record = read_supervisor_record(file);
    return {record.generation, record.supervisor};
  } catch (const InputError&) {
    return {};
  }
}

}  // namespace tessera::engine
