// Events of a run in a box of `top`.

#pragma once

#include <vector>

#include "engine/run_files/run_event.h"
#include "engine/run_view/canvas.h"

namespace tessera::engine {

// Below the first line of the box, which is left for a title: the latest ones, the newest at the
// end; a long one takes several lines. Of checkpoints only the last counts.
void draw_events(Canvas& canvas, const CanvasBox& box, const std::vector<RunEvent>& events);

}  // namespace tessera::engine
