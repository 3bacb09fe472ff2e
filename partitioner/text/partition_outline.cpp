#include "partitioner/text/partition_outline.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "partitioner/base/quantities.h"
#include "partitioner/base/text_table.h"
#include "partitioner/text/plan_words.h"

namespace tessera::partitioner {

std::string outline_text(const OutlinedPartition& outlined) {
  const auto& [model, network, partition, batch, memory] = outlined;
  constexpr std::size_t kCutsWidth = 84;
  TextTable lines({{"model", Align::Left}, {model, Align::Left}});
  lines.add_row(
      {"input",
       fmt::format("{}, {} per pass", shape_text(network.image), counted(batch, "image"))});
  lines.add_row({"layers",
                 fmt::format("{} in {} on {}",
                             network.size(),
                             counted(std::ssize(partition.groups), "group"),
                             counted(partition.ranks, "rank"))});
  lines.add_row({"cut", wrapped(hand_overs(partition), kCutsWidth)});
  if (const auto recomputed = recomputed_words(partition); !recomputed.empty()) {
    lines.add_row({"recomputed", wrapped(recomputed, kCutsWidth)});
  }
  return lines.text() +
         "For so many ranks the plan is not made message by message: memory is estimated, and "
         "there "
         "are\nno tables of regions and messages.\n";
}

std::string outline_json(const OutlinedPartition& outlined) {
  using Json = nlohmann::ordered_json;
  Json json{{"model", outlined.model},
            {"ranks", outlined.partition.ranks},
            {"batch", outlined.batch},
            {"estimated", true}};
  for (const Group& group : outlined.partition.groups) {
    json["groups"].push_back({{"first", group.first},
                              {"last", group.last},
                              {"images", group.image_parts()},
                              {"channels", group.channels.parts},
                              {"rows", group.rows.parts},
                              {"cols", group.cols.parts},
                              {"tiles", group.tiles()},
                              {"recompute", group.recompute}});
  }
  for (const MemoryUse& use : outlined.memory) {
    json["memory_bytes"].push_back(use.total());
  }
  return json.dump(-1, ' ', true);
}

}  // namespace tessera::partitioner
