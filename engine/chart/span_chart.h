// What happened when, lane by lane: spans of time as boxes, such as the actions of a step on each
// rank.

#pragma once

#include <string>
#include <vector>

#include "engine/chart/figure.h"

namespace tessera::engine {

struct Span {
  double begin_s = 0;
  double end_s = 0;
  int kind = 0;           // in SpanChart::kinds
  std::string text = {};  // what a reader is told of it
};

struct Lane {
  std::string name = {};
  std::vector<Span> spans = {};  // by begin; do not overlap
  bool thin = false;             // what goes on beside the lane above
};

struct SpanChart {
  std::string id = {};
  std::string title = {};
  std::vector<LegendEntry> kinds = {};
  std::vector<Lane> lanes = {};
  std::string note = {};
  Table table = {};
};

// Whether there is no span of any length.
[[nodiscard]] bool is_empty(const SpanChart& chart);

// Takes the whole width of the page. Spans that are too short to be told apart are drawn together,
// without their texts.
[[nodiscard]] std::string span_chart_html(const SpanChart& chart);

}  // namespace tessera::engine
