// A curve in a part of a canvas, with its scale on the left: two by four dots of Braille in a
// character, or an asterisk without Unicode.

#pragma once

#include <vector>

#include "engine/run_view/canvas.h"

namespace tessera::engine {

struct CurvePoint {
  double x = 0;
  double y = 0;  // NaN: left out
};

// `line` by rising x: points that share a column of dots are drawn as their mean. `marks` are drawn
// on top, each by itself. The scale is logarithmic where positive values differ much. Without a
// point, or room for one, nothing is drawn and the result is false.
bool draw_curve(Canvas& canvas,
                const CanvasBox& box,
                const std::vector<CurvePoint>& line,
                const std::vector<CurvePoint>& marks);

}  // namespace tessera::engine
