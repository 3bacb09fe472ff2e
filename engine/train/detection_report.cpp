#include "engine/train/detection_report.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "engine/detection/box_confusion.h"
#include "engine/detection/detection_curves.h"
#include "engine/run_files/test_results.h"
#include "engine/train/classification_report.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/text_table.h"

namespace tessera::engine {

namespace {

constexpr std::size_t kMostCurveClasses = 100;  // whose curves are written one by one

double part_of(Index part, Index whole) {
  return whole == 0 ? std::numeric_limits<double>::quiet_NaN()
                    : static_cast<double>(part) / static_cast<double>(whole);
}

std::string shown(double share) {
  return std::isnan(share) ? "-" : fmt::format("{:.1f} %", 100 * share);
}

std::string percent_or_dash(const std::optional<double>& share) {
  return shown(share.value_or(std::numeric_limits<double>::quiet_NaN()));
}

std::string class_lines(const std::vector<JudgedClass>& judged,
                        const PlainFigures& plain,
                        const std::vector<std::string>& names) {
  std::string text = fmt::format("{:>8} {:>9} {:>8} {:>8} {:>7} {:>7} {:>7}  class\n",
                                 "AP",
                                 "precision",
                                 "recall",
                                 "F1",
                                 "TP",
                                 "FP",
                                 "FN");
  for (std::size_t label = 0; label < judged.size(); ++label) {
    const FoundCounts counts = counts_of(judged[label]);
    text += fmt::format("{:>8} {:>9} {:>8} {:>8} {:>7} {:>7} {:>7}  {}\n",
                        percent_or_dash(plain.darknet_of_classes[label]),
                        shown(counts.precision()),
                        shown(counts.recall()),
                        shown(counts.f1()),
                        counts.true_positives,
                        counts.false_positives,
                        counts.false_negatives,
                        printable(class_name(names, label)));
  }
  return text +
         fmt::format("AP as Darknet takes it; the rest of boxes with a score of {} or more.\n",
                     kConfidence);
}

std::string name_in_matrix(const std::vector<std::string>& names,
                           std::size_t label,
                           std::size_t background) {
  constexpr std::size_t kColumns = 12;
  return label == background ? "background"
                             : shortened(printable(class_name(names, label)), kColumns);
}

std::string all_pairs(const BoxConfusion& confusion, const std::vector<std::string>& names) {
  const std::size_t background = confusion.size() - 1;
  const auto number = [&](std::size_t label) {
    return label == background ? std::string("-") : std::to_string(label);
  };
  std::vector<Column> columns{{"object"}, {"", Align::Left}, {"as"}};
  for (std::size_t label = 0; label <= background; ++label) {
    columns.push_back({number(label)});
  }
  TextTable table(columns, 1);
  for (std::size_t label = 0; label <= background; ++label) {
    std::vector<std::string> cells{number(label), name_in_matrix(names, label, background), ""};
    for (const Index count : confusion[label]) {
      cells.push_back(std::to_string(count));
    }
    table.add_row(std::move(cells));
  }
  return table.text();
}

// Of different classes; background is left out, since TP, FP and FN tell most of that.
std::string pairs_confused_most(const BoxConfusion& confusion,
                                const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 8;
  struct Pair {
    Index count = 0;
    std::size_t label = 0;
    std::size_t said = 0;
  };
  std::vector<Pair> pairs;
  const std::size_t background = confusion.size() - 1;
  for (std::size_t label = 0; label < background; ++label) {
    for (std::size_t said = 0; said < background; ++said) {
      if (label != said && confusion[label][said] > 0) {
        pairs.push_back({confusion[label][said], label, said});
      }
    }
  }
  if (pairs.empty()) {
    return "no class was mistaken for another\n";
  }
  std::stable_sort(
      pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.count > b.count; });
  pairs.resize(std::min(pairs.size(), kMost));
  TextTable table({{"objects"}, {"of class", Align::Left}, {"taken for", Align::Left}});
  for (const Pair& pair : pairs) {
    const auto& row = confusion[pair.label];
    table.add_row(
        {fmt::format("{} of {}", pair.count, std::accumulate(row.begin(), row.end(), Index{0})),
         name_in_matrix(names, pair.label, background),
         name_in_matrix(names, pair.said, background)});
  }
  return "confused most:\n" + table.text();
}

std::string confusion_text(const DetectionMetrics& metrics, const std::vector<std::string>& names) {
  constexpr Index kMostShown = 10;
  const BoxConfusion& confusion = metrics.confusion();
  if (confusion.empty()) {
    return "";
  }
  if (metrics.classes() > kMostShown) {
    return '\n' + pairs_confused_most(confusion, names);
  }
  return "\nconfusion matrix: the objects of each class, and as what they were found:\n" +
         all_pairs(confusion, names) +
         fmt::format(
             "A box with a score of {} or more is that of the object of its class that it\n"
             "overlaps most, by more than {}; if that has one already, of one of another class\n"
             "that has none; else of background (-).\n",
             kConfidence,
             kPlainIou);
}

// Some points of the means.
std::string curve_text(const CurvesOfClasses& curves) {
  if (!curves.mean) {
    return "";
  }
  constexpr int kStep = kCurveSteps / 10;
  std::vector<Column> columns{{"means over classes, in %, at", Align::Left}};
  std::vector<std::string> precision{"precision, from this recall on"};
  std::vector<std::string> f1{"F1, of boxes from this score on"};
  for (int i = 0; i <= kCurveSteps; i += kStep) {
    columns.push_back({fmt::format("{:.1f}", curve_place(i))});
    precision.push_back(
        fmt::format("{:.0f}", 100 * curves.mean->precision[static_cast<std::size_t>(i)]));
    f1.push_back(fmt::format("{:.0f}", 100 * curves.mean->f1[static_cast<std::size_t>(i)]));
  }
  TextTable table(columns, 1);
  table.add_row(std::move(precision));
  table.add_row(std::move(f1));
  const BestF1 best = curves.best_f1().value();
  return table.text() +
         fmt::format("the highest F1 is {}, at a score of {:.2f}\n", shown(best.f1), best.score);
}

double number_of(const std::optional<double>& share) {
  return share.value_or(kUnknown);
}

std::optional<MeanCurves> curves_to_write(const CurvesOfClasses& curves) {
  if (!curves.mean) {
    return std::nullopt;
  }
  const BestF1 best = curves.best_f1().value();
  MeanCurves result{.precision = curves.mean->precision,
                    .f1 = curves.mean->f1,
                    .best_f1 = best.f1,
                    .best_f1_score = best.score};
  for (std::size_t label = 0;
       curves.classes.size() <= kMostCurveClasses && label < curves.classes.size();
       ++label) {
    if (const auto& each = curves.classes[label]) {
      result.classes.push_back({static_cast<Index>(label), each->precision, each->f1});
    }
  }
  return result;
}

}  // namespace

double FoundCounts::precision() const {
  return part_of(true_positives, true_positives + false_positives);
}

double FoundCounts::recall() const {
  return part_of(true_positives, true_positives + false_negatives);
}

double FoundCounts::f1() const {
  return part_of(2 * true_positives, 2 * true_positives + false_positives + false_negatives);
}

FoundCounts counts_of(const JudgedClass& judged) {
  FoundCounts counts;
  for (const JudgedBox& box : judged.boxes) {
    if (box.score >= kConfidence) {
      counts.true_positives += box.darknet == JudgedBox::Match::TruePositive ? 1 : 0;
      counts.false_positives += box.darknet == JudgedBox::Match::FalsePositive ? 1 : 0;
    }
  }
  counts.false_negatives = judged.true_boxes() - counts.true_positives;
  return counts;
}

std::string average_precision_table(const CocoFigures& coco,
                                    const PlainFigures& plain,
                                    std::string (*shown)(const std::optional<double>& share)) {
  std::string text;
  for (const NamedCocoFigure& figure : kCocoFigures) {
    text +=
        fmt::format("{:<6}  {:>7}  {}\n", figure.name, shown(coco.*figure.value), figure.meaning);
  }
  text += "\nAt an overlap of 0.50, four ways to take a mean of precision:\n";
  const auto line = [&](const std::optional<double>& share, const char* meaning) {
    text += fmt::format("  {:>7}  {}\n", shown(share), meaning);
  };
  line(coco.ap_at_50, "COCO: at 101 recalls, of at most 100 boxes an image and class");
  line(plain.voc_11_points, "VOC up to 2009: at 11 recalls; a box counts its last pixel, too");
  line(plain.voc_all_points, "VOC from 2010: at all recalls");
  line(plain.darknet, "Darknet: at all recalls, of plain areas");
  return text +
         "COCO gives an object to the best box that is left, VOC and Darknet to the first\n"
         "box that overlaps most with it.\n";
}

std::string detection_table(const DetectionMetrics& metrics,
                            const std::vector<std::string>& names) {
  const std::vector<JudgedClass>& judged = metrics.judged();
  const PlainFigures plain = plain_figures(judged);
  std::string text = average_precision_table(coco_figures(judged), plain, percent_or_dash);
  text += "(Sizes are in pixels of the network's input.)\n\n";
  text += class_lines(judged, plain, names);
  text += confusion_text(metrics, names);
  const std::string curves = curve_text(detection_curves(judged));
  return curves.empty() ? text : text + '\n' + curves;
}

void add_detection(nlohmann::ordered_json& json,
                   const DetectionMetrics& metrics,
                   const std::vector<std::string>& names) {
  const std::vector<JudgedClass>& judged = metrics.judged();
  const CocoFigures coco = coco_figures(judged);
  const PlainFigures plain = plain_figures(judged);
  DetectionResults results{.voc_11_points = number_of(plain.voc_11_points),
                           .voc_all_points = number_of(plain.voc_all_points),
                           .iou = kPlainIou,
                           .score = kConfidence,
                           .confusion = metrics.confusion(),
                           .curves = curves_to_write(detection_curves(judged))};
  for (const NamedCocoFigure& figure : kCocoFigures) {
    results.coco[figure.name] = number_of(coco.*figure.value);
  }
  for (std::size_t label = 0; label < judged.size(); ++label) {
    const FoundCounts counts = counts_of(judged[label]);
    results.classes.push_back({.label = static_cast<Index>(label),
                               .name = class_name(names, label),
                               .objects = judged[label].true_boxes(),
                               .ap50 = number_of(plain.darknet_of_classes[label]),
                               .precision = counts.precision(),
                               .recall = counts.recall(),
                               .f1 = counts.f1(),
                               .right = counts.true_positives,
                               .wrong = counts.false_positives,
                               .missed = counts.false_negatives});
  }
  add_results(json, results);
}

}  // namespace tessera::engine
