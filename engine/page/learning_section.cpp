#include <algorithm>
#include <cmath>

#include "engine/chart/line_chart.h"
#include "engine/page/sections.h"
#include "engine/page/step_series.h"

namespace tessera::engine {

namespace {

// Whether values are spread over so many powers of ten that a linear axis would hide the small
// ones.
bool is_widely_spread(const std::vector<Point>& points) {
  constexpr double kWide = 50;
  double low = INFINITY;
  double high = 0;
  for (const Point& point : smoothed(points, 20)) {
    if (std::isfinite(point.y)) {
      low = std::min(low, point.y);
      high = std::max(high, point.y);
    }
  }
  return low > 0 && high > kWide * low;
}

LineChart over_steps(const RunData& run, const char* id, const char* title) {
  LineChart chart;
  chart.id = id;
  chart.title = title;
  chart.x_name = "step";
  chart.marks = step_marks(run);
  return chart;
}

LineChart loss_chart(const RunData& run) {
  LineChart chart = over_steps(run, "loss", "Loss");
  std::vector<Point> training = step_points(run, &StepRecord::loss);
  chart.logarithmic = is_widely_spread(training);
  chart.from_zero = !chart.logarithmic;
  add_smoothed(chart, "training", std::move(training), 0);
  if (std::vector<Point> test = evaluation_points(run, &EvaluationRecord::test_loss);
      !test.empty()) {
    chart.series.push_back({"test", std::move(test), 1, LineLook::Dots});
  }
  return chart;
}

LineChart accuracy_chart(const RunData& run) {
  LineChart chart = over_steps(
      run,
      "accuracy",
      run.finds_objects ? "Mean average precision at an overlap of 0.5" : "Test accuracy");
  chart.y_unit = Unit::Share;
  chart.y_most = 1;
  chart.series.push_back(
      {"", evaluation_points(run, &EvaluationRecord::accuracy), 1, LineLook::Dots});
  return chart;
}

LineChart rate_chart(const RunData& run) {
  LineChart chart = over_steps(run, "learning-rate", "Learning rate");
  chart.from_zero = true;
  chart.series.push_back({"", step_points(run, &StepRecord::learning_rate), 2});
  return chart;
}

LineChart speed_chart(const RunData& run) {
  LineChart chart = over_steps(run, "images-per-second", "Images per second");
  chart.from_zero = true;
  add_smoothed(chart, "", step_points(run, &StepRecord::images_per_s), 3);
  return chart;
}

}  // namespace

PageSection learning_section(const RunData& run) {
  PageSection section{.id = "learning", .title = "Learning"};
  if (run.steps.empty() && run.evaluations.empty()) {
    section.missing = "Loss and accuracy: metrics.jsonl has no step yet.";
    return section;
  }
  const std::string charts = line_chart_html(loss_chart(run)) +
                             line_chart_html(accuracy_chart(run)) +
                             line_chart_html(rate_chart(run)) + line_chart_html(speed_chart(run));
  section.html = charts.empty() ? "" : "<div class=\"grid-of-2\">\n" + charts + "</div>\n";
  if (run.evaluations.empty()) {
    section.missing = "Test accuracy: the run has not been evaluated yet.";
  }
  return section;
}

}  // namespace tessera::engine
