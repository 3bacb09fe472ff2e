#include "engine/train/classification_report.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "engine/run_files/test_results.h"
#include "engine/train/detection_report.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/text_table.h"

namespace tessera::engine {

namespace {

constexpr int kMostRows = 10;             // classes of which people are shown all pairs
constexpr std::size_t kMostListed = 8;    // classes, and pairs, that are shown of more
constexpr int kMostConfusion = 1000;      // classes whose pairs are all written as JSON
constexpr std::size_t kNameColumns = 12;  // of a name in a table

std::string percent(double share) {
  return std::isnan(share) ? "-" : fmt::format("{:.1f} %", 100 * share);
}

std::string short_name(const std::vector<std::string>& names, int number) {
  return shortened(printable(class_name(names, static_cast<std::size_t>(number))), kNameColumns);
}

std::vector<std::string> class_cells(const ClassificationMetrics& metrics,
                                     const std::vector<std::string>& names,
                                     int number) {
  const ClassScore& score = metrics.score(number);
  return {std::to_string(number),
          short_name(names, number),
          percent(score.recall()),
          percent(score.precision())};
}

// One row per class: the pairs stand beside what is known of the class.
std::string confusion_table(const ClassificationMetrics& metrics,
                            const std::vector<std::string>& names) {
  std::vector<Column> columns{{"class"}, {"", Align::Left}, {"recall"}, {"precision"}, {"as"}};
  for (int predicted = 0; predicted < metrics.classes(); ++predicted) {
    columns.push_back({std::to_string(predicted)});
  }
  TextTable table(columns, 1);
  for (int label = 0; label < metrics.classes(); ++label) {
    std::vector<std::string> cells = class_cells(metrics, names, label);
    cells.emplace_back();
    for (int predicted = 0; predicted < metrics.classes(); ++predicted) {
      cells.push_back(std::to_string(metrics.confusion(label, predicted)));
    }
    table.add_row(std::move(cells));
  }
  return "confusion matrix: each class, and how its pictures were classified:\n" + table.text();
}

std::string lowest_recall_table(const ClassificationMetrics& metrics,
                                const std::vector<std::string>& names) {
  std::vector<int> order;
  for (int number = 0; number < metrics.classes(); ++number) {
    if (metrics.score(number).pictures > 0) {
      order.push_back(number);
    }
  }
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return metrics.score(a).recall() < metrics.score(b).recall();
  });
  order.resize(std::min(order.size(), kMostListed));
  TextTable table({{"class"}, {"", Align::Left}, {"recall"}, {"precision"}, {"pictures"}});
  for (const int number : order) {
    std::vector<std::string> cells = class_cells(metrics, names, number);
    cells.push_back(std::to_string(metrics.score(number).pictures));
    table.add_row(std::move(cells));
  }
  return fmt::format("lowest recall, {} of {} classes (all with --json):\n{}",
                     order.size(),
                     metrics.classes(),
                     table.text());
}

std::string most_confused(const ClassificationMetrics& metrics,
                          const std::vector<std::string>& names) {
  std::vector<Confusion> pairs = metrics.confusions();
  if (pairs.empty()) {
    return "no class was mistaken for another\n";
  }
  pairs.resize(std::min(pairs.size(), kMostListed));
  TextTable table({{"pictures"}, {"of class", Align::Left}, {"taken for", Align::Left}});
  for (const Confusion& pair : pairs) {
    table.add_row({fmt::format("{} of {}", pair.pictures, metrics.score(pair.label).pictures),
                   short_name(names, pair.label),
                   short_name(names, pair.predicted)});
  }
  return "confused most:\n" + table.text();
}

}  // namespace

std::string class_name(const std::vector<std::string>& names, std::size_t number) {
  return number < names.size() ? names[number] : fmt::format("class {}", number);
}

std::string classification_table(const ClassificationMetrics& metrics,
                                 const std::vector<std::string>& names) {
  return metrics.classes() <= kMostRows
             ? confusion_table(metrics, names)
             : lowest_recall_table(metrics, names) + "\n" + most_confused(metrics, names);
}

void add_classification(nlohmann::ordered_json& json,
                        const ClassificationMetrics& metrics,
                        const std::vector<std::string>& names) {
  ClassificationResults results;
  if (metrics.classes() > 5) {
    results.top5 = metrics.top5();
  }
  for (int number = 0; number < metrics.classes(); ++number) {
    const ClassScore& score = metrics.score(number);
    results.classes.push_back({.label = number,
                               .name = class_name(names, static_cast<std::size_t>(number)),
                               .pictures = score.pictures,
                               .predicted = score.predicted,
                               .right = score.right,
                               .recall = score.recall(),
                               .precision = score.precision()});
  }
  for (int label = 0; metrics.classes() <= kMostConfusion && label < metrics.classes(); ++label) {
    std::vector<Index>& row = results.confusion.emplace_back();
    for (int predicted = 0; predicted < metrics.classes(); ++predicted) {
      row.push_back(metrics.confusion(label, predicted));
    }
  }
  add_results(json, results);
}

nlohmann::ordered_json evaluation_json(const EvaluationResult& result,
                                       const std::vector<std::string>& names) {
  nlohmann::ordered_json json{{result.score().name, result.score().value},
                              {"loss", result.loss},
                              {"pictures", result.pictures}};
  if (const auto* classes = dynamic_cast<const ClassificationMetrics*>(result.metric)) {
    add_classification(json, *classes, names);
  } else if (const auto* objects = dynamic_cast<const DetectionMetrics*>(result.metric)) {
    add_detection(json, *objects, names);
  }
  return json;
}

std::string json_text(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace tessera::engine
