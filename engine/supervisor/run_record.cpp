#include "engine/supervisor/run_record.h"

#include <algorithm>
#include <exception>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/files/json_text.h"
#include "engine/supervisor/state_folder.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

nlohmann::json to_json(const SupervisorRecord& record) {
  nlohmann::json hosts = nlohmann::json::array();
  for (const Host& host : record.hosts) {
    hosts.push_back({{"name", host.name}, {"ranks", host.ranks}});
  }
  return {{"run_number", record.run_number},
          {"words", record.words},
          {"hosts", hosts},
          {"folder", record.folder},
          {"run_folder", record.run_folder},
          {"remote_shell", record.remote_shell},
          {"generation", record.generation}};
}

SupervisorRecord read_supervisor_record(const std::filesystem::path& file) {
  const auto text = read_json_text(file);
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
    record.generation = read.at("generation").get<Index>();
    for (const nlohmann::json& host : read.at("hosts")) {
      record.hosts.push_back({host.at("name").get<std::string>(), host.at("ranks").get<int>()});
    }
  } catch (const nlohmann::json::exception&) {
    throw InputError(printable(file.string()) + " is damaged");
  }
  const bool sound = is_run_number(record.run_number) && !record.words.empty() &&
                     !record.hosts.empty() && record.generation >= 0 &&
                     std::all_of(record.hosts.begin(), record.hosts.end(), [](const Host& host) {
                       return is_host_name(host.name) && host.ranks >= 1;
                     });
  if (!sound) {
    throw InputError(printable(file.string()) + " is damaged");
  }
  return record;
}

Index generation_of(const std::filesystem::path& file) {
  try {
    return read_supervisor_record(file).generation;
  } catch (const InputError&) {
    return 0;
  }
}

}  // namespace tessera::engine
