#include "engine/chart/tile_chart.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "engine/chart/figure.h"
#include "engine/chart/markup.h"

namespace tessera::engine {

namespace {

constexpr double kSide = 118;  // of the square that a map with its panels fits into
constexpr double kArrow = 26;
constexpr double kCaption = 16;

struct TileOfRank {
  int rank = 0;
  Region region;
};

// Regions of the same images and channels lie side by side in one panel.
struct Panel {
  Range images;
  Range channels;
  std::vector<TileOfRank> tiles;
};

std::vector<Panel> panels_of(const TiledMap& map) {
  std::vector<Panel> panels;
  for (std::size_t rank = 0; rank < map.regions.size(); ++rank) {
    const Region region = intersect(map.regions[rank], map.whole);
    if (region.empty()) {
      continue;
    }
    auto panel = std::find_if(panels.begin(), panels.end(), [&](const Panel& each) {
      return each.images == region.images && each.channels == region.channels;
    });
    if (panel == panels.end()) {
      panels.push_back({region.images, region.channels, {}});
      panel = panels.end() - 1;
    }
    panel->tiles.push_back({static_cast<int>(rank), region});
  }
  return panels;
}

std::string range_text(const char* name, const Range& range) {
  return range.size() == 1 ? fmt::format("{} {}", name, range.begin)
                           : fmt::format("{}s {}-{}", name, range.begin, range.end - 1);
}

// Where cells of a map lie in the drawing.
struct Place {
  double x = 0;
  double y = 0;
  double cell_width = 1;
  double cell_height = 1;

  [[nodiscard]] std::string box(const Region& region) const {
    return fmt::format("x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"",
                       coordinate(x + cell_width * static_cast<double>(region.cols.begin)),
                       coordinate(y + cell_height * static_cast<double>(region.rows.begin)),
                       coordinate(cell_width * static_cast<double>(region.cols.size())),
                       coordinate(cell_height * static_cast<double>(region.rows.size())));
  }
};

std::string tooltip(const Panel& panel, const TileOfRank& tile) {
  return fmt::format("rank {}: rows {}-{}, columns {}-{}, {}, {}",
                     tile.rank,
                     tile.region.rows.begin,
                     tile.region.rows.end - 1,
                     tile.region.cols.begin,
                     tile.region.cols.end - 1,
                     range_text("channel", panel.channels),
                     range_text("image", panel.images));
}

std::string tile_svg(const Panel& panel, const TileOfRank& tile, const Place& place) {
  return fmt::format("<g class=\"tile {}\"><title>{}</title><rect {}/></g>",
                     colour_class(tile.rank),
                     tooltip(panel, tile),
                     place.box(tile.region));
}

std::string rank_svg(const TileOfRank& tile, const Place& place) {
  const Region& region = tile.region;
  return fmt::format(
      "<text class=\"middle\" x=\"{}\" y=\"{}\" dy=\".34em\">{}</text>",
      coordinate(place.x +
                 place.cell_width * static_cast<double>(region.cols.begin + region.cols.end) / 2),
      coordinate(place.y +
                 place.cell_height * static_cast<double>(region.rows.begin + region.rows.end) / 2),
      tile.rank);
}

// Cells that more than one rank has.
std::string overlaps_svg(const Panel& panel, const Place& place) {
  std::string svg;
  for (std::size_t i = 0; i < panel.tiles.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      const Region both = intersect(panel.tiles[i].region, panel.tiles[k].region);
      if (!both.empty()) {
        svg += fmt::format("<rect {}/>", place.box(both));
      }
    }
  }
  return svg.empty() ? "" : "<g class=\"halo\">" + svg + "</g>";
}

std::string panel_svg(const TiledMap& map, const Panel& panel, const Place& place, double size) {
  constexpr double kLabelled = 15;  // side of a tile that has room for a number
  std::string svg = fmt::format("<rect class=\"paper\" {}/>", place.box(map.whole));
  const bool same =
      panel.tiles.size() > 1 &&
      std::all_of(panel.tiles.begin(), panel.tiles.end(), [&](const TileOfRank& tile) {
        return tile.region == panel.tiles.front().region;
      });
  if (same) {
    return svg +
           fmt::format("<g class=\"halo\"><rect {}><title>each of {} ranks</title></rect></g>",
                       place.box(panel.tiles.front().region),
                       panel.tiles.size());
  }
  const double room = size / std::sqrt(static_cast<double>(panel.tiles.size()));
  std::string ranks;
  for (const TileOfRank& tile : panel.tiles) {
    svg += tile_svg(panel, tile, place);
    ranks += room >= kLabelled ? rank_svg(tile, place) : "";
  }
  return svg + overlaps_svg(panel, place) + "<g class=\"ranks\">" + ranks + "</g>";
}

// The panels of a map in rows, within a square at (x, y).
std::string map_svg(const TiledMap& map, double left, double top) {
  const std::vector<Panel> panels = panels_of(map);
  const auto count = std::max<double>(1, static_cast<double>(panels.size()));
  const double across = std::ceil(std::sqrt(count));
  const double down = std::ceil(count / across);
  const double gap = panels.size() > 1 ? 4 : 0;
  const double room = (kSide - gap * (across - 1)) / across;
  const auto rows = static_cast<double>(std::max<Index>(map.whole.rows.size(), 1));
  const auto cols = static_cast<double>(std::max<Index>(map.whole.cols.size(), 1));
  const double cell = room / std::max(rows, cols);
  // Very long maps stay visible.
  constexpr double kThinnest = 5;
  const double width = std::max(cell * cols, kThinnest);
  const double height = std::max(cell * rows, kThinnest);
  const double x0 = left + (kSide - across * room - gap * (across - 1)) / 2 + (room - width) / 2;
  const double y0 = top + (kSide - down * room - gap * (down - 1)) / 2 + (room - height) / 2;
  std::string svg;
  for (std::size_t i = 0; i < panels.size(); ++i) {
    const auto column = static_cast<double>(i % static_cast<std::size_t>(across));
    const auto row = static_cast<double>(i / static_cast<std::size_t>(across));
    const Place place{.x = x0 + column * (room + gap),
                      .y = y0 + row * (room + gap),
                      .cell_width = width / cols,
                      .cell_height = height / rows};
    svg += panel_svg(map, panels[i], place, std::min(width, height));
  }
  return svg + fmt::format("<text class=\"middle quiet\" x=\"{}\" y=\"{}\">{}</text>\n",
                           coordinate(left + kSide / 2),
                           coordinate(top + kSide + 13),
                           escaped(map.name));
}

std::string card_html(const TileCard& card) {
  std::string svg;
  double x = 1;
  for (std::size_t i = 0; i < card.maps.size(); ++i) {
    if (i > 0) {
      svg += fmt::format("<path class=\"arrow\" d=\"M{0} {1}h{2}m-4 -3l4 3l-4 3\"/>",
                         coordinate(x + 5),
                         coordinate(1 + kSide / 2),
                         coordinate(kArrow - 10));
      x += kArrow;
    }
    svg += map_svg(card.maps[i], x, 1);
    x += kSide;
  }
  std::string html = "<li><h4>" + escaped(card.title) + "</h4>" +
                     drawing_svg(x + 1, kSide + 2 + kCaption, card.title, "", svg);
  for (const std::string& note : card.notes) {
    html += "<p>" + escaped(note) + "</p>";
  }
  return html + "</li>\n";
}

}  // namespace

std::string tile_cards_html(const std::string& id, const std::vector<TileCard>& cards) {
  std::string html = fmt::format("<ul class=\"cards\" id=\"{}\">\n", escaped(id));
  for (const TileCard& card : cards) {
    html += card_html(card);
  }
  return html + "</ul>\n";
}

std::string hatch_pattern() {
  return "<svg width=\"0\" height=\"0\" class=\"patterns\" aria-hidden=\"true\"><defs><pattern "
         "id=\"hatch\" width=\"4\" height=\"4\" patternUnits=\"userSpaceOnUse\" "
         "patternTransform=\"rotate(45)\"><path d=\"M0 0V4\"/></pattern></defs></svg>\n";
}

}  // namespace tessera::engine
