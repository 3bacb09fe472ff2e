#include <algorithm>
#include <fmt/format.h>

#include "engine/chart/figure.h"
#include "engine/chart/tile_chart.h"
#include "engine/page/sections.h"
#include "engine/page/words.h"
#include "partitioner/base/quantities.h"

namespace tessera::engine {

namespace {

constexpr int kImageMap = -1;

// The whole of a map; empty where the plan does not say.
Region whole_map(const PlanOutline& plan, int map) {
  if (map == kImageMap) {
    return {{0, plan.batch}, {0, plan.image_channels}, {0, plan.image_rows}, {0, plan.image_cols}};
  }
  const OutlinedLayer& layer = plan.layers[static_cast<std::size_t>(map)];
  return {{0, plan.batch}, {0, layer.channels}, {0, layer.rows}, {0, layer.cols}};
}

std::string map_name(const char* what, const Region& whole) {
  return fmt::format(
      "{} {}x{}x{}", what, whole.channels.size(), whole.rows.size(), whole.cols.size());
}

// What ranks require of the map that the group reads; of runs whose plan does not say, what they
// compute of its first layer's output.
TiledMap input_of(const PlanOutline& plan, const OutlinedGroup& group) {
  TiledMap map;
  if (!group.reads.empty()) {
    const OutlinedRead& read = group.reads.back();
    map.whole = whole_map(plan, read.map);
    map.name = map_name(read.map == kImageMap ? "image" : "reads", map.whole);
    map.regions = read.required;
    return map;
  }
  map.whole = whole_map(plan, group.first);
  map.name = map_name("first", map.whole);
  for (const OutlinedTile& tile : group.tiles) {
    map.regions.push_back(tile.computed);
  }
  return map;
}

TiledMap output_of(const PlanOutline& plan, const OutlinedGroup& group) {
  TiledMap map;
  map.whole = whole_map(plan, group.last);
  map.name = map_name("output", map.whole);
  for (const OutlinedTile& tile : group.tiles) {
    map.regions.push_back(tile.owned);
  }
  return map;
}

std::string kinds_of(const PlanOutline& plan, const OutlinedGroup& group) {
  std::vector<std::pair<std::string, int>> kinds;
  for (int layer = group.first; layer <= group.last; ++layer) {
    const std::string& kind = plan.layers[static_cast<std::size_t>(layer)].kind;
    if (kinds.empty() || kinds.back().first != kind) {
      kinds.emplace_back(kind, 0);
    }
    ++kinds.back().second;
  }
  constexpr std::size_t kMost = 6;
  std::string text;
  for (std::size_t i = 0; i < std::min(kinds.size(), kMost); ++i) {
    text += i == 0 ? "" : ", ";
    text += kinds[i].first + (kinds[i].second > 1 ? fmt::format(" x{}", kinds[i].second) : "");
  }
  return kinds.size() > kMost ? text + ", ..." : text;
}

TileCard card_of(const PlanOutline& plan, const OutlinedGroup& group) {
  TileCard card;
  card.title = layers_name(group) + ": " + cut_text(group);
  card.maps = {input_of(plan, group), output_of(plan, group)};
  card.notes.push_back(kinds_of(plan, group));
  std::string costs = group.messages == 0 ? std::string()
                                          : fmt::format("{} in {}",
                                                        readable_bytes(group.message_bytes),
                                                        counted(group.messages, "message"));
  if (group.redundant_multiply_adds > 0) {
    costs += (costs.empty() ? "" : "; ") +
             share_of(group.redundant_multiply_adds, group.multiply_adds) + " computed twice";
  }
  if (group.recomputes) {
    costs += std::string(costs.empty() ? "" : "; ") + "recomputed in the backward pass";
  }
  if (!costs.empty()) {
    card.notes.push_back(costs);
  }
  return card;
}

}  // namespace

PageSection tiles_section(const RunData& run) {
  PageSection section{.id = "tiles", .title = "Tiles over the picture"};
  if (!run.plan) {
    section.missing = "Tiles: there is no plan.json, which this version of the program writes.";
    return section;
  }
  if (run.plan->ranks == 1) {
    return section;  // each map is one tile
  }
  std::vector<TileCard> cards;
  for (const OutlinedGroup& group : run.plan->groups) {
    cards.push_back(card_of(*run.plan, group));
  }
  std::string note =
      "For each group of layers that are computed without a message in between: what each rank "
      "requires of the map that the group reads, and what it owns of the group's output. Numbers "
      "are ranks. Bytes are those of one forward pass.";
  section.html = "<p class=\"note\">" + note + "</p>\n" +
                 legend_html({{"halo: cells that several ranks require", 0, Swatch::Hatched}}) +
                 tile_cards_html("tile-cards", cards);
  return section;
}

}  // namespace tessera::engine
