// A table of a run's devices in a part of a canvas: where each one's step goes as a bar, its tile,
// memory, and what its sensors say.

#pragma once

#include <vector>

#include "engine/run_view/canvas.h"
#include "engine/run_view/run_figures.h"

namespace tessera::engine {

// Titles in the first line of the box and a device in each of the others, from `first` on. Columns
// of which nothing is known are left out, and the least important ones where there is no room.
void draw_devices(Canvas& canvas,
                  const CanvasBox& box,
                  const std::vector<DeviceNow>& devices,
                  int first);

// What the parts of a bar mean, to the right of a column. Returns the column after it.
int draw_bar_legend(Canvas& canvas, int column, int line);

}  // namespace tessera::engine
