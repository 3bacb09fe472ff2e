// Horizontal bars made of parts, in groups: what was planned beside what was measured, device by
// device.

#pragma once

#include <string>
#include <vector>

#include "engine/chart/figure.h"
#include "engine/chart/line_chart.h"
#include "engine/chart/unit.h"

namespace tessera::engine {

struct BarPart {
  std::string name = {};
  int colour = 0;
};

struct Bar {
  std::string name = {};            // "planned"
  std::vector<double> values = {};  // of each part; what is not finite counts as 0
  bool pale = false;                // what was not measured
};

struct BarGroup {
  std::string name = {};  // "rank 0, pi-1"
  std::vector<Bar> bars = {};
};

struct BarChart {
  std::string id = {};
  std::string title = {};
  Unit unit = Unit::Number;
  std::vector<BarPart> parts = {};  // those that are 0 in all bars are left out
  std::vector<BarGroup> groups = {};
  std::vector<Level> levels = {};
  std::string note = {};
  bool wide = false;
};

// Whether all bars have no length.
[[nodiscard]] bool is_empty(const BarChart& chart);

[[nodiscard]] std::string bar_chart_html(const BarChart& chart);

}  // namespace tessera::engine
