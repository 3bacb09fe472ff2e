#include "engine/run_view/tile_drawing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

namespace tessera::engine {

namespace {

// Rules that meet in a character, and what they look like together.
enum Side : unsigned { kUp = 1, kDown = 2, kLeft = 4, kRight = 8 };
constexpr std::array<const char*, 16> kRules = {
    " ", "│", "│", "│", "─", "┘", "┐", "┤", "─", "└", "┌", "├", "─", "┴", "┬", "┼"};
constexpr std::array<const char*, 16> kAsciiRules = {
    " ", "|", "|", "|", "-", "+", "+", "+", "-", "+", "+", "+", "-", "+", "+", "+"};

// A character is about twice as high as wide.
constexpr double kCharacterShape = 2;

class TileDrawing {
 public:
  TileDrawing(Canvas& canvas, const CanvasBox& box, Index rows, Index cols)
      : canvas_(canvas), box_(box), rows_(rows), cols_(cols) {
    const double shape = static_cast<double>(cols) / static_cast<double>(rows);
    const double columns = std::min<double>(box.columns, box.lines * shape * kCharacterShape);
    columns_ = static_cast<int>(columns);
    lines_ = std::min(box.lines, static_cast<int>(std::lround(columns / shape / kCharacterShape)));
    rules_.resize(static_cast<std::size_t>(std::max(columns_, 0)) *
                  static_cast<std::size_t>(std::max(lines_, 0)));
  }

  // Room for a number in each of several tiles.
  [[nodiscard]] bool has_room() const { return columns_ >= 8 && lines_ >= 4; }

  void add(int rank, const Region& owned) {
    const Lines at = {column(owned.cols.begin),
                      column(owned.cols.end),
                      line(owned.rows.begin),
                      line(owned.rows.end)};
    for (int x = at.left; x < at.right; ++x) {
      for (const int y : {at.top, at.bottom}) {
        mark(x, y, kRight);
        mark(x + 1, y, kLeft);
      }
    }
    for (int y = at.top; y < at.bottom; ++y) {
      for (const int x : {at.left, at.right}) {
        mark(x, y, kDown);
        mark(x, y + 1, kUp);
      }
    }
    tiles_.push_back({rank, at});
  }

  void draw() {
    const auto& rules = canvas_.style().unicode ? kRules : kAsciiRules;
    for (int y = 0; y < lines_; ++y) {
      for (int x = 0; x < columns_; ++x) {
        if (const unsigned sides = rules_[place(x, y)]) {
          canvas_.write(box_.column + x, box_.line + y, rules.at(sides), Ink::Faint);
        }
      }
    }
    for (const Tile& tile : tiles_) {
      const std::string number = std::to_string(tile.rank);
      const int room = tile.at.right - tile.at.left - 1;
      if (screen_width(number) <= room && tile.at.bottom - tile.at.top > 1) {
        canvas_.write(box_.column + (tile.at.left + tile.at.right + 1 - screen_width(number)) / 2,
                      box_.line + (tile.at.top + tile.at.bottom) / 2,
                      number,
                      Ink::Strong);
      }
    }
  }

 private:
  struct Lines {
    int left, right, top, bottom;
  };
  struct Tile {
    int rank;
    Lines at;
  };

  [[nodiscard]] int column(Index col) const {
    return static_cast<int>(col * (columns_ - 1) / cols_);
  }
  [[nodiscard]] int line(Index row) const { return static_cast<int>(row * (lines_ - 1) / rows_); }
  [[nodiscard]] std::size_t place(int x, int y) const {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(columns_) +
           static_cast<std::size_t>(x);
  }
  void mark(int x, int y, Side side) { rules_[place(x, y)] |= side; }

  Canvas& canvas_;
  CanvasBox box_;
  Index rows_;  // of the map
  Index cols_;
  int columns_ = 0;  // that the map takes
  int lines_ = 0;
  std::vector<unsigned> rules_;
  std::vector<Tile> tiles_;
};

bool lies_in(const Range& range, Index whole) {
  return range.begin >= 0 && range.end <= whole;
}

// Rows or columns are cut, and every tile is a part of the map.
bool is_tiled(const OutlinedGroup& group, const OutlinedLayer& map) {
  bool cut = false;
  for (const OutlinedTile& tile : group.tiles) {
    const Region& owned = tile.owned;
    if (!owned.empty() && (!lies_in(owned.rows, map.rows) || !lies_in(owned.cols, map.cols))) {
      return false;
    }
    cut = cut || (!owned.empty() && (owned.rows.size() < map.rows || owned.cols.size() < map.cols));
  }
  return cut;
}

}  // namespace

const OutlinedGroup* tiled_group(const PlanOutline& plan) {
  for (const OutlinedGroup& group : plan.groups) {
    if (is_tiled(group, plan.layers[static_cast<std::size_t>(group.last)])) {
      return &group;
    }
  }
  return nullptr;
}

bool draw_tiles(Canvas& canvas, const CanvasBox& box, const PlanOutline& plan) {
  const OutlinedGroup* group = tiled_group(plan);
  if (group == nullptr) {
    return false;
  }
  const OutlinedLayer& map = plan.layers[static_cast<std::size_t>(group->last)];
  TileDrawing drawing(canvas, box, map.rows, map.cols);
  if (!drawing.has_room()) {
    return false;
  }
  for (std::size_t rank = 0; rank < group->tiles.size(); ++rank) {
    if (!group->tiles[rank].owned.empty()) {
      drawing.add(static_cast<int>(rank), group->tiles[rank].owned);
    }
  }
  drawing.draw();
  return true;
}

}  // namespace tessera::engine
