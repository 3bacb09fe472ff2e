// Which rank has which part of a feature map: tiles over the map, and what several ranks need
// hatched. Cuts by images and by channels are panels side by side.

#pragma once

#include <string>
#include <vector>

#include "partitioner/base/region.h"

namespace tessera::engine {

// A map with a region of each rank, in cells of the map; empty ones are those of idle ranks.
struct TiledMap {
  std::string name = {};  // "input", "output"
  Region whole = {};
  std::vector<Region> regions = {};  // by rank
};

struct TileCard {
  std::string title = {};               // "layers 0-3"
  std::vector<TiledMap> maps = {};      // from the first to the last that is drawn
  std::vector<std::string> notes = {};  // lines below
};

// Cards in rows; each shows its maps with an arrow between them. The page has to hold
// hatch_pattern() once.
[[nodiscard]] std::string tile_cards_html(const std::string& id,
                                          const std::vector<TileCard>& cards);

[[nodiscard]] std::string hatch_pattern();

}  // namespace tessera::engine
