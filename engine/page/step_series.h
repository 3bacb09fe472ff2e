// Series and marks over the steps of a run.

#pragma once

#include <vector>

#include "engine/chart/line_chart.h"
#include "engine/run_view/run_data.h"

namespace tessera::engine {

[[nodiscard]] std::vector<Point> step_points(const RunData& run, double StepRecord::*value);
[[nodiscard]] std::vector<Point> evaluation_points(const RunData& run,
                                                   double EvaluationRecord::*value);

// Each step faint, and their running mean over it, which says so; few steps are one line.
void add_smoothed(LineChart& chart, const std::string& name, std::vector<Point> points, int colour);

// What happened to the run, over steps or over seconds: checkpoints are small marks; ends, resumed
// runs, warnings, faults and recoveries strong ones. A fault stands for the resumed run after it.
[[nodiscard]] std::vector<Mark> step_marks(const RunData& run);
[[nodiscard]] std::vector<Mark> time_marks(const RunData& run);

}  // namespace tessera::engine
