// The tiles of a map in a part of a canvas: a rectangle for each rank, with its number.

#pragma once

#include "engine/run_files/plan_outline.h"
#include "engine/run_view/canvas.h"

namespace tessera::engine {

// Draws the tiles of the first group whose map is cut into rows and columns. Where there is none,
// or no room, nothing is drawn and the result is false.
bool draw_tiles(Canvas& canvas, const CanvasBox& box, const PlanOutline& plan);

// The group that draw_tiles() draws; null: none.
[[nodiscard]] const OutlinedGroup* tiled_group(const PlanOutline& plan);

}  // namespace tessera::engine
