#include "engine/run_files/rank_memory.h"

#include "engine/run_files/record_fields.h"

namespace tessera::engine {

using partitioner::MemoryUse;

namespace {

constexpr const char* kRanks = "ranks";
constexpr const char* kRank = "rank";
constexpr const char* kPlanned = "planned";
constexpr const char* kMeasured = "measured";
constexpr const char* kPeakResident = "peak_resident";

RecordJson json_of(const MemoryUse& use) {
  RecordJson json;
  for (const partitioner::MemoryKind& kind : partitioner::kMemoryKinds) {
    json[kind.name] = use.*kind.bytes;
  }
  json["total"] = use.total();
  return json;
}

MemoryUse memory_use(const RecordJson& json) {
  MemoryUse use;
  for (const partitioner::MemoryKind& kind : partitioner::kMemoryKinds) {
    take(json.value(kind.name, RecordJson()), use.*kind.bytes);
  }
  return use;
}

}  // namespace

std::string text_of(const std::vector<RankMemory>& ranks) {
  RecordJson json{{"unit", "bytes"}, {kRanks, RecordJson::array()}};
  for (const RankMemory& each : ranks) {
    RecordJson measured = json_of(each.measured);
    measured[kPeakResident] = record_json(each.peak_resident_bytes, 0);
    json[kRanks].push_back(
        {{kRank, each.rank}, {kPlanned, json_of(each.planned)}, {kMeasured, measured}});
  }
  return json.dump(1) + "\n";
}

std::optional<std::vector<RankMemory>> memory_of_ranks(std::string_view text) {
  try {
    std::vector<RankMemory> ranks;
    const RecordJson json = RecordJson::parse(text);
    for (const RecordJson& each : json.at(kRanks)) {
      const RecordJson& measured = each.at(kMeasured);
      RankMemory& memory = ranks.emplace_back();
      memory = {each.at(kRank).get<int>(), memory_use(each.at(kPlanned)), memory_use(measured)};
      take(measured.value(kPeakResident, RecordJson()), memory.peak_resident_bytes);
    }
    return ranks;
  } catch (const RecordJson::exception&) {
    return std::nullopt;
  }
}

}  // namespace tessera::engine
