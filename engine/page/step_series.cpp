#include "engine/page/step_series.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace tessera::engine {

namespace {

bool is_strong(const std::string& kind) {
  return kind == "resume" || kind == "signal" || kind == "failure" || kind == "warning" ||
         kind == "fault" || kind == "recovery";
}

template <class Place>
std::vector<Mark> marks(const RunData& run, const Place& place) {
  constexpr std::size_t kMostSmall = 60;
  constexpr std::size_t kMostStrong = 20;
  constexpr Index kNowhere = -1;
  std::vector<Mark> small;
  std::vector<Mark> strong;
  Index fault_at = kNowhere;  // the step, where the last strong event was a fault
  for (const RunEvent& event : run.events) {
    const bool is_checkpoint = event.kind == "checkpoint";
    if (!is_checkpoint && !is_strong(event.kind)) {
      continue;
    }
    // Its label would be hidden by that of the fault that it goes on after, at the same step.
    const bool hidden = event.kind == "resume" && fault_at == event.step;
    fault_at = event.kind == "fault" ? event.step : kNowhere;
    Mark mark{.x = place(event),
              .label = event.kind,
              .text = event.text.empty() ? event.kind : event.text,
              .strong = !is_checkpoint};
    if (std::isfinite(mark.x) && !hidden) {
      (is_checkpoint ? small : strong).push_back(std::move(mark));
    }
  }
  // So many would be a bar along the axis.
  if (small.size() > kMostSmall) {
    small.clear();
  }
  if (strong.size() > kMostStrong) {
    strong.erase(strong.begin(), strong.end() - kMostStrong);
  }
  small.insert(small.end(), strong.begin(), strong.end());
  return small;
}

}  // namespace

std::vector<Point> step_points(const RunData& run, double StepRecord::*value) {
  std::vector<Point> points;
  points.reserve(run.steps.size());
  for (const StepRecord& record : run.steps) {
    points.push_back({static_cast<double>(record.step), record.*value});
  }
  return points;
}

std::vector<Point> evaluation_points(const RunData& run, double EvaluationRecord::*value) {
  std::vector<Point> points;
  for (const EvaluationRecord& record : run.evaluations) {
    if (known(record.*value)) {
      points.push_back({static_cast<double>(record.step), record.*value});
    }
  }
  return points;
}

void add_smoothed(LineChart& chart,
                  const std::string& name,
                  std::vector<Point> points,
                  int colour) {
  constexpr std::size_t kFew = 60;
  constexpr double kWindows = 60;
  if (points.size() <= kFew) {
    chart.series.push_back({name, std::move(points), colour, LineLook::Line});
    return;
  }
  std::vector<Point> mean = smoothed(points, static_cast<double>(points.size()) / kWindows);
  chart.series.push_back({"each step", std::move(points), colour, LineLook::Faint});
  chart.series.push_back({name + (name.empty() ? "" : ", ") + "running mean",
                          std::move(mean),
                          colour,
                          LineLook::Line});
}

std::vector<Mark> step_marks(const RunData& run) {
  return marks(run, [](const RunEvent& event) { return static_cast<double>(event.step); });
}

std::vector<Mark> time_marks(const RunData& run) {
  return marks(run, [](const RunEvent& event) { return event.t_s; });
}

}  // namespace tessera::engine
