#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/chart/bar_chart.h"
#include "engine/chart/markup.h"
#include "engine/chart/matrix_chart.h"
#include "engine/page/sections.h"
#include "engine/page/test_section.h"

namespace tessera::engine {

using Json = nlohmann::json;

namespace {

struct ClassResult {
  std::string name;
  Index pictures = 0;
  double recall = kUnknown;
  double precision = kUnknown;
};

struct Classification {
  std::vector<ClassResult> classes;
  std::vector<std::vector<std::int64_t>> confusion;  // [label][predicted]; empty: too many classes
  std::string prefix;                                // of ids
};

double number_or_unknown(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->get<double>() : kUnknown;
}

// Throws Json::exception where it is something else.
Classification classification(const Json& json, const std::string& prefix) {
  Classification result;
  result.prefix = prefix;
  for (const Json& each : json.at("classes")) {
    result.classes.push_back({each.at("name").get<std::string>(),
                              each.value("pictures", Index{0}),
                              number_or_unknown(each, "recall"),
                              number_or_unknown(each, "precision")});
  }
  if (json.contains("confusion")) {
    result.confusion = json.at("confusion").get<std::vector<std::vector<std::int64_t>>>();
  }
  return result;
}

BarChart class_chart(const Classification& result) {
  constexpr std::size_t kMost = 30;
  std::vector<ClassResult> classes = result.classes;
  BarChart chart;
  chart.id = result.prefix + "classes-chart";
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

MatrixChart confusion_chart(const Classification& result) {
  MatrixChart chart;
  chart.id = result.prefix + "confusion";
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
std::string most_confused(const Classification& result) {
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

std::string classes_html(const Json& evaluation, const std::string& prefix) {
  const Classification result = classification(evaluation, prefix);
  const bool drawn = !is_empty(confusion_chart(result));
  const std::string html = bar_chart_html(class_chart(result)) +
                           matrix_chart_html(confusion_chart(result)) +
                           (drawn && result.classes.size() <= 12 ? "" : most_confused(result));
  return html.empty() ? "" : "<div class=\"grid-of-2\">\n" + html + "</div>\n";
}

}  // namespace

PageSection classes_section(const RunData& run, Test test) {
  return test_section(run, test, {"Classes", "Accuracy of each class"}, classes_html);
}

}  // namespace tessera::engine
