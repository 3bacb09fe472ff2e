#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "engine/chart/bar_chart.h"
#include "engine/chart/markup.h"
#include "engine/chart/matrix_chart.h"
#include "engine/page/sections.h"
#include "engine/page/test_section.h"
#include "engine/run_files/test_results.h"

namespace tessera::engine {

namespace {

BarChart class_chart(const ClassificationResults& result, const std::string& prefix) {
  constexpr std::size_t kMost = 30;
  std::vector<ClassResult> classes = result.classes;
  BarChart chart;
  chart.id = prefix + "classes-chart";
  chart.title = "Recall and precision of each class";
  chart.unit = Unit::Share;
  chart.parts = {{"recall", 0}, {"precision", 1}};
  if (classes.size() > kMost) {
    std::stable_sort(classes.begin(), classes.end(), [](const auto& a, const auto& b) {
      return (known(a.recall) ? a.recall : 2) < (known(b.recall) ? b.recall : 2);
    });
    classes.resize(kMost);
    chart.title = "Recall and precision of the classes with the lowest recall";
    chart.note = fmt::format("{} of {} classes.", kMost, result.classes.size());
  }
  for (const ClassResult& each : classes) {
    BarGroup group{each.name, {}};
    group.bars.push_back({"", {each.recall, 0}});
    group.bars.push_back({"", {0, each.precision}});
    chart.groups.push_back(std::move(group));
  }
  return chart;
}

MatrixChart confusion_chart(const ClassificationResults& result, const std::string& prefix) {
  MatrixChart chart;
  chart.id = prefix + "confusion";
  chart.title = "Confusion matrix";
  chart.row_name = "class";
  chart.column_name = "taken for";
  for (const ClassResult& each : result.classes) {
    chart.names.push_back(each.name);
  }
  chart.cells = result.confusion;
  return chart;
}

// The pairs that are confused most, as a table.
std::string most_confused(const ClassificationResults& result) {
  struct Pair {
    std::size_t label = 0;
    std::size_t predicted = 0;
    std::int64_t pictures = 0;
  };
  constexpr std::size_t kMost = 12;
  std::vector<Pair> pairs;
  const std::size_t count = std::min(result.classes.size(), result.confusion.size());
  for (std::size_t label = 0; label < count; ++label) {
    const std::vector<std::int64_t>& row = result.confusion[label];
    for (std::size_t predicted = 0; predicted < std::min(count, row.size()); ++predicted) {
      if (label != predicted && row[predicted] > 0) {
        pairs.push_back({label, predicted, row[predicted]});
      }
    }
  }
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) {
    return a.pictures > b.pictures;
  });
  pairs.resize(std::min(pairs.size(), kMost));
  Table table{{"of class", "taken for", "pictures"}, {}};
  for (const Pair& pair : pairs) {
    table.rows.push_back(
        {result.classes[pair.label].name,
         result.classes[pair.predicted].name,
         fmt::format("{} of {}", pair.pictures, result.classes[pair.label].pictures)});
  }
  return pairs.empty() ? ""
                       : "<div><h3>Confused most</h3><div class=\"scroll\">" + table_html(table) +
                             "</div></div>\n";
}

std::optional<std::string> classes_html(const std::string& evaluation, const std::string& prefix) {
  const auto result = classification_results(evaluation);
  if (!result) {
    return std::nullopt;
  }
  const MatrixChart confusion = confusion_chart(*result, prefix);
  const bool drawn = !is_empty(confusion);
  const std::string html = bar_chart_html(class_chart(*result, prefix)) +
                           matrix_chart_html(confusion) +
                           (drawn && result->classes.size() <= 12 ? "" : most_confused(*result));
  return html.empty() ? "" : "<div class=\"grid-of-2\">\n" + html + "</div>\n";
}

}  // namespace

PageSection classes_section(const RunData& run, Test test) {
  return test_section(run, test, {"Classes", "Accuracy of each class"}, classes_html);
}

}  // namespace tessera::engine
