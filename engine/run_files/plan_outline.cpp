#include "engine/run_files/plan_outline.h"

#include <nlohmann/json.hpp>

namespace tessera::engine {

using Json = nlohmann::json;

namespace {

Range range(const Json& json) {
  return {json.at(0).get<Index>(), json.at(1).get<Index>()};
}

Region region(const Json& json) {
  return {range(json.at("images")),
          range(json.at("channels")),
          range(json.at("rows")),
          range(json.at("cols"))};
}

OutlinedLayer layer(const Json& json) {
  const Json& output = json.at("output");
  return {json.at("kind").get<std::string>(),
          output.at(0).get<Index>(),
          output.at(1).get<Index>(),
          output.at(2).get<Index>()};
}

OutlinedRead read(const Json& json) {
  OutlinedRead result{json.at("map").get<int>(), {}};
  for (const Json& one : json.at("required")) {
    result.required.push_back(region(one));
  }
  return result;
}

OutlinedGroup group(const Json& json) {
  OutlinedGroup result{json.at("layers").at(0).get<int>(),
                       json.at("layers").at(1).get<int>(),
                       json.value("recompute", false),
                       {}};
  for (const Json& tile : json.at("ranks")) {
    result.tiles.push_back({region(tile.at("owned")), region(tile.at("computed"))});
    result.multiply_adds += tile.value("multiply_adds", Index{0});
    result.redundant_multiply_adds += tile.value("redundant_multiply_adds", Index{0});
  }
  for (const Json& one : json.value("reads", Json::array())) {
    result.reads.push_back(read(one));
  }
  for (const Json& message : json.value("messages", Json::array())) {
    ++result.messages;
    result.message_bytes += message.at("bytes").get<Index>();
  }
  return result;
}

PlanOutline outline(const Json& json) {
  PlanOutline result;
  result.batch = json.at("batch").get<Index>();
  result.ranks = json.at("ranks").get<int>();
  if (const auto image = json.find("image"); image != json.end()) {
    result.image_channels = image->at(0).get<Index>();
    result.image_rows = image->at(1).get<Index>();
    result.image_cols = image->at(2).get<Index>();
  }
  for (const Json& one : json.at("layers")) {
    result.layers.push_back(layer(one));
  }
  for (const Json& one : json.at("groups")) {
    result.groups.push_back(group(one));
  }
  return result;
}

bool is_whole(const PlanOutline& plan) {
  for (const OutlinedGroup& one : plan.groups) {
    const bool layers_exist =
        one.first >= 0 && one.first <= one.last && one.last < std::ssize(plan.layers);
    if (!layers_exist || std::ssize(one.tiles) != plan.ranks) {
      return false;
    }
    for (const OutlinedRead& each : one.reads) {
      if (each.map < -1 || each.map >= one.first || std::ssize(each.required) != plan.ranks) {
        return false;
      }
    }
  }
  return plan.ranks > 0 && !plan.groups.empty();
}

}  // namespace

std::optional<PlanOutline> plan_outline(std::string_view json) {
  try {
    PlanOutline result = outline(Json::parse(json));
    return is_whole(result) ? std::optional(std::move(result)) : std::nullopt;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace tessera::engine
