#include "engine/ops/convolution/winograd_tiles.h"

#include <algorithm>

namespace tessera::engine {

namespace {

Index floor_divide(Index cell, Index side) {
  return cell >= 0 ? cell / side : -((side - 1 - cell) / side);
}

// The tiles that cover a range of cells.
Range tiles_over(const Range& cells, Index side) {
  return {floor_divide(cells.begin, side), floor_divide(cells.end - 1, side) + 1};
}

// The cells of a square of `side` at (row, col) that lie inside `cells`.
TileCells cells_inside(const Region& cells, Index row, Index col, Index side) {
  const auto clip = [side](Index cell) { return std::clamp<Index>(cell, 0, side); };
  return {clip(cells.rows.begin - row),
          clip(cells.rows.end - row),
          clip(cells.cols.begin - col),
          clip(cells.cols.end - col)};
}

}  // namespace

TileGrid::TileGrid(Index side, const Region& region)
    : side_(side),
      images_(region.images),
      rows_(tiles_over(region.rows, side)),
      cols_(tiles_over(region.cols, side)) {}

SquareRun TileGrid::run_from(Index first, Index end, const TileSquares& squares) const {
  const Index line = first / cols_.size();
  const Index place = first - line * cols_.size();
  SquareRun run;
  run.first = first;
  run.tiles = 1;
  run.image = images_.begin + line / rows_.size();
  run.row = (rows_.begin + line % rows_.size()) * side_ + squares.offset;
  run.col = (cols_.begin + place) * side_ + squares.offset;
  run.inside = cells_inside(squares.cells, run.row, run.col, squares.side);
  if (run.inside.all_cols(squares.side)) {
    const Index whole = (squares.cells.cols.end - squares.side - run.col) / side_ + 1;
    run.tiles = std::min({whole, cols_.size() - place, end - first});
  }
  return run;
}

TileGrid::Lines TileGrid::lines_of(Index row_number, const Region& region) const {
  const Index first = (rows_.begin + row_number % rows_.size()) * side_;
  return {images_.begin + row_number / rows_.size(),
          intersect({first, first + side_}, region.rows)};
}

}  // namespace tessera::engine
