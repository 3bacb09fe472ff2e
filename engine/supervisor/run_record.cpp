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
#include "engine/processes/descriptor.h"
#include "engine/supervisor/state_folder.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

namespace {

constexpr Index kMostGenerations = 1'000'000'000;  // one more is a number still
constexpr Index kMostRanks = 1'000'000;            // of a host: fewer start, as its agent says

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

void to_json(nlohmann::json& object, const SupervisorRecord& record) {
  nlohmann::json hosts = nlohmann::json::array();
  for (const Host& host : record.hosts) {
    hosts.push_back({{"name", host.name}, {"ranks", host.ranks}});
  }
  object = {{"run_number", record.run_number},
            {"words", record.words},
            {"request", record.request},
            {"typed", record.typed},
            {"hosts", hosts},
            {"folder", record.folder},
            {"run_folder", record.run_folder},
            {"remote_shell", record.remote_shell},
            {"generation", record.generation},
            {"copies", record.copies},
            {"supervisor", record.supervisor},
            {"last_step", record.last_step},
            {"witness", record.witness},
            {"interface", record.interface},
            {"leader", record.leader},
            {"stopped", record.stopped}};
}

void from_json(const nlohmann::json& object, SupervisorRecord& record) {
  record = {};
  record.run_number = object.at("run_number").get<std::string>();
  record.words = object.at("words").get<std::vector<std::string>>();
  record.folder = object.at("folder").get<std::string>();
  record.run_folder = object.at("run_folder").get<std::string>();
  record.remote_shell = object.at("remote_shell").get<std::string>();
  record.generation = whole_number_in(object.at("generation"), kMostGenerations);
  record.supervisor = object.value("supervisor", std::string());
  // What old files lack.
  record.request = object.value("request", TrainingRequest());
  record.copies = object.value("copies", Index{0});
  record.witness = object.value("witness", std::string());
  record.interface = object.value("interface", std::string());
  record.typed = object.value("typed", std::vector<std::string>());
  record.leader = object.value("leader", std::string());
  record.stopped = object.value("stopped", false);
  for (const nlohmann::json& host : object.at("hosts")) {
    record.hosts.push_back({host.at("name").get<std::string>(),
                            static_cast<int>(whole_number_in(host.at("ranks"), kMostRanks))});
  }
  std::vector<int> all(record.hosts.size());
  std::iota(all.begin(), all.end(), 0);
  record.last_step = object.value("last_step", all);
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
    throw InputError("the record of the run is damaged");
  }
}

std::string text_of(const SupervisorRecord& record) {
  return nlohmann::json(record).dump(1) + "\n";
}

SupervisorRecord read_supervisor_record(const std::filesystem::path& file) {
  const auto text = text_of_own_record(file);
  if (!text) {
    throw InputError(fmt::format("{}: there is no record of a run that `tessera run` has begun",
                                 printable(file.string())));
  }
  try {
    return nlohmann::json::parse(*text).get<SupervisorRecord>();
  } catch (const nlohmann::json::exception&) {
    throw InputError(printable(file.string()) + " is damaged");
  } catch (const InputError&) {
    throw InputError(printable(file.string()) + " is damaged");
  }
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
