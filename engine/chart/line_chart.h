// Lines over steps or time: several series with a legend, bands, marks at single moments, limits.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/chart/figure.h"
#include "engine/chart/points.h"
#include "engine/chart/unit.h"

namespace tessera::engine {

enum class LineLook { Line, Faint, Dashed, Dots };

struct Series {
  std::string name = {};
  std::vector<Point> points = {};  // by rising x
  int colour = 0;
  LineLook look = LineLook::Line;
};

// Between two lines that have the same x.
struct Band {
  std::string name = {};
  std::vector<Point> low = {};
  std::vector<Point> high = {};
  int colour = 0;
};

// Something that happened. Small ones are ticks on the axis, strong ones a line with their label.
struct Mark {
  double x = 0;
  std::string label = {};
  std::string text = {};  // what a reader is told of it
  bool strong = false;
};

// A level that something is not to pass, or that was predicted.
struct Level {
  double y = 0;
  std::string text = {};
};

struct LineChart {
  std::string id = {};
  std::string title = {};
  std::string x_name = {};     // "step", or "" where the unit says it
  Unit x_unit = Unit::Number;  // of whole numbers
  Unit y_unit = Unit::Number;
  bool from_zero = false;             // y begins at 0
  bool logarithmic = false;           // y, where all values are positive
  std::optional<double> y_most = {};  // where the scale has an end of its own, as shares have
  std::vector<Series> series = {};
  std::vector<Band> bands = {};
  std::vector<Mark> marks = {};
  std::vector<Level> levels = {};
  std::string note = {};
  bool wide = false;
};

// Whether there is nothing to draw.
[[nodiscard]] bool is_empty(const LineChart& chart);

// Long series are thinned to what the drawing can show. The table has first, last, lowest and
// highest values of each series.
[[nodiscard]] std::string line_chart_html(const LineChart& chart);

}  // namespace tessera::engine
