#include "engine/run_view/run_info.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace tessera::engine {

using Json = nlohmann::json;

namespace {

std::string text_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

double number_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->get<double>() : kUnknown;
}

Index count_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number_integer() ? found->get<Index>() : 0;
}

std::vector<RunRank> ranks_of(const Json& json) {
  std::vector<RunRank> ranks;
  for (const Json& rank : json.value("ranks", Json::array())) {
    ranks.push_back({rank.is_object() ? static_cast<int>(count_of(rank, "rank")) : 0,
                     text_of(rank, "host"),
                     static_cast<int>(count_of(rank, "threads"))});
  }
  return ranks;
}

RunState state_of(const std::string& name) {
  for (const RunState state :
       {RunState::Running, RunState::Finished, RunState::Interrupted, RunState::Failed}) {
    if (name == name_of(state)) {
      return state;
    }
  }
  return RunState::Interrupted;
}

partitioner::MemoryUse memory_use(const Json& json) {
  partitioner::MemoryUse use;
  for (const partitioner::MemoryKind& kind : partitioner::kMemoryKinds) {
    use.*kind.bytes = count_of(json, kind.name);
  }
  return use;
}

}  // namespace

std::optional<RunJson> run_json(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) {
    return std::nullopt;
  }
  try {
    RunJson run;
    RunInfo& info = run.info;
    for (const auto& [key, member] : {std::pair{"version", &RunInfo::version},
                                      {"model", &RunInfo::model},
                                      {"data", &RunInfo::data},
                                      {"command", &RunInfo::command},
                                      {"sync", &RunInfo::sync},
                                      {"gradient_precision", &RunInfo::gradient_precision},
                                      {"started", &RunInfo::started},
                                      {"ended", &RunInfo::ended}}) {
      info.*member = text_of(json, key);
    }
    for (const auto& [key, member] : {std::pair{"first_step", &RunInfo::first_step},
                                      {"last_step", &RunInfo::last_step},
                                      {"epoch_steps", &RunInfo::epoch_steps},
                                      {"batch", &RunInfo::batch},
                                      {"seed", &RunInfo::seed},
                                      {"replicas", &RunInfo::replicas},
                                      {"training_pictures", &RunInfo::training_pictures},
                                      {"testing_pictures", &RunInfo::testing_pictures}}) {
      info.*member = count_of(json, key);
    }
    for (const Json& name : json.value("class_names", Json::array())) {
      info.class_names.push_back(name.get<std::string>());
    }
    for (const Json& reason : json.value("not_exact", Json::array())) {
      info.inexact.push_back(reason.get<std::string>());
    }
    info.ranks = ranks_of(json);
    info.predicted_step_s = number_of(json, "predicted_step_s");
    info.memory_limit_bytes = number_of(json, "memory_limit_bytes");
    info.sent.steps = count_of(json, "sent_steps");
    info.written_bytes = number_of(json, "written_bytes");
    info.written_s = number_of(json, "written_s");
    for (const Json& bytes : json.value("sent_bytes_by_rank", Json::array())) {
      info.sent.bytes.push_back(bytes.get<double>());
    }
    if (const auto cache = json.find("cache"); cache != json.end() && cache->is_object()) {
      info.cache_place = text_of(*cache, "place");
      info.cache_bytes = number_of(*cache, "bytes");
      info.cache_kept = number_of(*cache, "kept");
      info.cache_decoded = number_of(*cache, "decoded");
    }
    run.state = state_of(text_of(json, "state"));
    run.reason = text_of(json, "reason");
    return run;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

std::optional<std::vector<RankMemory>> memory_of_ranks(std::string_view text) {
  try {
    std::vector<RankMemory> ranks;
    const Json json = Json::parse(text);
    for (const Json& rank : json.at("ranks")) {
      const Json& measured = rank.at("measured");
      ranks.push_back({rank.at("rank").get<int>(),
                       memory_use(rank.at("planned")),
                       memory_use(measured),
                       number_of(measured, "peak_resident")});
    }
    return ranks;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace tessera::engine
