#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>

#include "engine/chart/span_chart.h"
#include "engine/chart/unit.h"
#include "engine/page/sections.h"
#include "engine/page/words.h"

namespace tessera::engine {

using Json = nlohmann::json;

namespace {

enum Kind { Forward, BackwardMaps, BackwardWeights, Update, Other, Sending, Waiting, InFlight };
constexpr std::size_t kKinds = 8;

const std::vector<LegendEntry> kLegend = {{"forward", 0},
                                          {"gradients of maps", 2},
                                          {"gradients of weights", 5},
                                          {"update", 4},
                                          {"normalisation, activation, loss", 6},
                                          {"packing and sending", 3},
                                          {"waiting and unpacking", 1},
                                          {"on its way", 7, Swatch::Pale}};

Kind kind_of(const std::string& category, const std::string& phase) {
  if (category == "start") {
    return Sending;
  }
  if (category == "finish") {
    return Waiting;
  }
  if (phase == "forward" || phase == "prepare" || phase == "recompute" || phase == "restore") {
    return Forward;
  }
  if (phase == "backward data") {
    return BackwardMaps;
  }
  if (phase == "backward weights") {
    return BackwardWeights;
  }
  return phase == "update" ? Update : Other;
}

struct RankLanes {
  std::vector<Span> actions;
  std::vector<std::pair<double, double>> flights;  // seconds
  double measured_s[kKinds] = {};
  double predicted_s[kKinds] = {};
};

struct StepLanes {
  std::map<int, RankLanes> ranks;
  bool predicted = false;
};

constexpr double kMicrosecond = 1e-6;

void add_action(const Json& event, RankLanes& lanes, bool& predicted) {
  const Json arguments = event.value("args", Json::object());
  const Kind kind = kind_of(event.value("cat", ""), arguments.value("phase", ""));
  Span span{.begin_s = kMicrosecond * event.at("ts").get<double>(), .kind = kind};
  const double length_s = kMicrosecond * event.at("dur").get<double>();
  span.end_s = span.begin_s + length_s;
  span.text = event.value("name", "") + ": " + quantity_text(length_s, Unit::Seconds);
  if (const auto found = arguments.find("predicted_s");
      found != arguments.end() && found->is_number()) {
    const double seconds = found->get<double>();
    span.text += ", predicted " + quantity_text(seconds, Unit::Seconds);
    lanes.predicted_s[kind] += seconds;
    predicted = true;
  }
  lanes.measured_s[kind] += length_s;
  lanes.actions.push_back(std::move(span));
}

// Throws Json::exception where the text is something else.
StepLanes step_lanes(const std::string& text) {
  StepLanes step;
  std::map<std::string, double> started;  // by what identifies a message on its way
  const Json json = Json::parse(text);
  for (const Json& event : json.at("traceEvents")) {
    const std::string phase = event.value("ph", "");
    if (phase != "X" && phase != "b" && phase != "e") {
      continue;
    }
    RankLanes& lanes = step.ranks[event.at("pid").get<int>()];
    if (phase == "X") {
      add_action(event, lanes, step.predicted);
      continue;
    }
    const std::string id = event.at("id2").dump();
    const double at_s = kMicrosecond * event.at("ts").get<double>();
    if (phase == "b") {
      started[id] = at_s;
    } else if (started.contains(id)) {
      lanes.flights.emplace_back(started[id], at_s);
    }
  }
  return step;
}

// Whether anything is on its way: overlapping messages are one span.
std::vector<Span> united(std::vector<std::pair<double, double>> flights) {
  std::sort(flights.begin(), flights.end());
  std::vector<Span> spans;
  for (const auto& [begin_s, end_s] : flights) {
    if (!spans.empty() && begin_s <= spans.back().end_s) {
      spans.back().end_s = std::max(spans.back().end_s, end_s);
    } else {
      spans.push_back({begin_s, end_s, InFlight, "messages on their way"});
    }
  }
  return spans;
}

// Seconds of a mean rank by kind.
Table lane_table(const StepLanes& step) {
  Table table{{"mean of all ranks", "measured"}, {}};
  if (step.predicted) {
    table.head.emplace_back("predicted");
  }
  const auto ranks = static_cast<double>(step.ranks.size());
  for (std::size_t kind = 0; kind < InFlight; ++kind) {
    double measured_s = 0;
    double predicted_s = 0;
    for (const auto& [rank, lanes] : step.ranks) {
      measured_s += lanes.measured_s[kind] / ranks;
      predicted_s += lanes.predicted_s[kind] / ranks;
    }
    if (measured_s > 0) {
      std::vector<std::string> row{kLegend[kind].name, quantity_text(measured_s, Unit::Seconds)};
      if (step.predicted) {
        row.push_back(quantity_text(predicted_s, Unit::Seconds));
      }
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

std::string timeline_html(const RunData& run, const StepLanes& step) {
  SpanChart chart;
  chart.id = "timeline";
  chart.title = "One step, action by action";
  chart.kinds = kLegend;
  for (const auto& [rank, lanes] : step.ranks) {
    Lane actions{rank_name(run, rank), lanes.actions, false};
    std::sort(actions.spans.begin(), actions.spans.end(), [](const Span& a, const Span& b) {
      return a.begin_s < b.begin_s;
    });
    chart.lanes.push_back(std::move(actions));
    if (std::vector<Span> flights = united(lanes.flights); !flights.empty()) {
      chart.lanes.push_back({"", std::move(flights), true});
    }
  }
  chart.table = lane_table(step);
  return span_chart_html(chart);
}

}  // namespace

PageSection timeline_section(const RunData& run) {
  PageSection section{.id = "timeline-section", .title = "Time line of a step"};
  if (run.timeline_json.empty()) {
    section.missing = "Time line of a step: timeline.json is missing.";
    return section;
  }
  try {
    section.html = timeline_html(run, step_lanes(run.timeline_json));
  } catch (const Json::exception&) {
    section.missing = "Time line of a step: timeline.json is not what this program writes.";
  }
  return section;
}

}  // namespace tessera::engine
