#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>

#include "engine/chart/bar_chart.h"
#include "engine/chart/line_chart.h"
#include "engine/page/sections.h"
#include "engine/page/step_series.h"
#include "engine/page/words.h"
#include "engine/run_view/run_figures.h"

namespace tessera::engine {

namespace {

const std::vector<BarPart> kStepParts = {{"forward", 0},
                                         {"backward", 2},
                                         {"update", 4},
                                         {"exchanging", 3},
                                         {"waiting for messages", 1},
                                         {"waiting for pictures", 6}};

constexpr double StepTiming::*kSeconds[] = {&StepTiming::forward_s,
                                            &StepTiming::backward_s,
                                            &StepTiming::update_s,
                                            &StepTiming::exchanging_s,
                                            &StepTiming::waiting_s,
                                            &StepTiming::loading_s};

// Means over all the steps of some timings of a rank.
std::vector<double> mean_parts(const std::vector<StepTiming>& timings, int rank) {
  std::vector<double> sums(std::size(kSeconds), 0);
  double steps = 0;
  for (const StepTiming& timing : timings) {
    if (timing.rank != rank) {
      continue;
    }
    const double weight = std::max<double>(1, static_cast<double>(timing.steps));
    steps += weight;
    for (std::size_t part = 0; part < std::size(kSeconds); ++part) {
      const double seconds = timing.*kSeconds[part];
      sums[part] += known(seconds) ? weight * seconds : 0;
    }
  }
  for (double& sum : sums) {
    sum = steps > 0 ? sum / steps : 0;
  }
  return sums;
}

// What to do where steps wait for pictures most of their time.
std::string advice(const RunData& run) {
  double step_s = 0;
  double loading_s = 0;
  for (const StepTiming& timing : run.timings) {
    const double steps = std::max<double>(1, static_cast<double>(timing.steps));
    step_s += known(timing.step_s) ? steps * timing.step_s : 0;
    loading_s += known(timing.loading_s) ? steps * timing.loading_s : 0;
  }
  const bool waits = step_s > 0 && loading_s > step_s / 2;
  return waits && run.info && run.info->cache && run.info->cache->place == "off"
             ? "Waiting for pictures takes most of the time, and each is decoded in every epoch: "
               "with --cache memory or --cache FOLDER it is decoded once."
             : "";
}

BarChart parts_chart(const RunData& run) {
  BarChart chart;
  chart.id = "step-parts";
  chart.title = "A mean step by device and part";
  chart.unit = Unit::Seconds;
  chart.parts = kStepParts;
  std::map<int, BarGroup> groups;
  for (const auto& [timings, name, pale] : {std::tuple{&run.predicted, "predicted", true},
                                            std::tuple{&run.timings, "measured", false}}) {
    for (const StepTiming& timing : *timings) {
      BarGroup& group = groups[timing.rank];
      group.name = rank_name(run, timing.rank);
      if (group.bars.empty() || group.bars.back().name != name) {
        group.bars.push_back({name, mean_parts(*timings, timing.rank), pale});
      }
    }
  }
  for (auto& [rank, group] : groups) {
    chart.groups.push_back(std::move(group));
  }
  chart.note = advice(run);
  if (chart.note.empty() && run.predicted.empty()) {
    chart.note = "Nothing was predicted: there was no profile of the cluster (tessera probe).";
  }
  return chart;
}

// For runs without timing by rank: what rank 0 wrote with each step.
BarChart rank_0_chart(const RunData& run) {
  BarChart chart;
  chart.id = "step-parts";
  chart.title = "A median step of rank 0 by part";
  chart.unit = Unit::Seconds;
  chart.parts = {{"forward", 0}, {"backward", 2}, {"update", 4}, {"waiting for pictures", 6}};
  chart.note = "Messages are part of forward, backward and update.";
  Bar bar;
  for (const auto part : {&StepRecord::forward_s,
                          &StepRecord::backward_s,
                          &StepRecord::update_s,
                          &StepRecord::load_s}) {
    std::vector<double> values;
    for (const StepRecord& step : run.steps) {
      values.push_back(step.*part);
    }
    bar.values.push_back(median_known(std::move(values)));
  }
  chart.groups.push_back({rank_name(run, 0), {bar}});
  return chart;
}

LineChart steps_chart(const RunData& run) {
  LineChart chart;
  chart.id = "step-time";
  chart.title = "Step time";
  chart.x_name = "step";
  chart.y_unit = Unit::Seconds;
  chart.from_zero = true;
  chart.marks = step_marks(run);
  add_smoothed(chart, "", step_points(run, &StepRecord::step_s), 0);
  if (run.info && known(run.info->predicted_step_s)) {
    chart.levels.push_back({run.info->predicted_step_s, "predicted"});
  }
  return chart;
}

}  // namespace

PageSection step_time_section(const RunData& run) {
  PageSection section{.id = "step-time-section", .title = "Where a step's time goes"};
  const BarChart parts =
      run.timings.empty() && run.predicted.empty() ? rank_0_chart(run) : parts_chart(run);
  const std::string charts = bar_chart_html(parts) + line_chart_html(steps_chart(run));
  if (!charts.empty()) {
    section.html = "<div class=\"grid-of-2\">\n" + charts + "</div>\n";
  }
  if (run.timings.empty()) {
    section.missing = "Step time by device: timing.jsonl is missing or empty.";
  }
  return section;
}

}  // namespace tessera::engine
