#include "engine/train/detection_report.h"

#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/train/classification_report.h"
#include "partitioner/base/json_value.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

namespace {

using nlohmann::ordered_json;

double part_of(Index part, Index whole) {
  return whole == 0 ? std::numeric_limits<double>::quiet_NaN()
                    : static_cast<double>(part) / static_cast<double>(whole);
}

std::string shown(double share) {
  return std::isnan(share) ? "-" : fmt::format("{:.1f} %", 100 * share);
}

std::string shown(const std::optional<double>& share) {
  return shown(share.value_or(std::numeric_limits<double>::quiet_NaN()));
}

ordered_json number_or_null(double value) {
  return std::isnan(value) ? ordered_json() : ordered_json(value);
}

}  // namespace

double FoundCounts::precision() const {
  return part_of(right, right + wrong);
}

double FoundCounts::recall() const {
  return part_of(right, right + missed);
}

double FoundCounts::f1() const {
  return part_of(2 * right, 2 * right + wrong + missed);
}

FoundCounts counts_of(const JudgedClass& judged) {
  FoundCounts counts;
  for (const JudgedBox& box : judged.boxes) {
    if (box.score >= kSaidScore) {
      counts.right += box.darknet == JudgedBox::Verdict::Right ? 1 : 0;
      counts.wrong += box.darknet == JudgedBox::Verdict::Wrong ? 1 : 0;
    }
  }
  counts.missed = judged.true_boxes() - counts.right;
  return counts;
}

std::string detection_table(const DetectionMetrics& metrics,
                            const std::vector<std::string>& names) {
  const std::vector<JudgedClass>& judged = metrics.judged();
  const CocoFigures coco = coco_figures(judged);
  const PlainFigures plain = plain_figures(judged);
  std::string text = fmt::format(
      "mean average precision: {} at an overlap of 0.5 (Darknet), VOC's {} (2007) and {} (2010),\n"
      "COCO's {} at 0.5 and {} over overlaps of 0.5 to 0.95\n"
      "of small objects {}, of medium ones {}, of large ones {} (pixels of the network's "
      "input)\n\n",
      shown(plain.darknet),
      shown(plain.voc_11_points),
      shown(plain.voc_all_points),
      shown(coco.ap_at_50),
      shown(coco.ap),
      shown(coco.ap_small),
      shown(coco.ap_medium),
      shown(coco.ap_large));
  text += fmt::format("{:>8} {:>8} {:>8} {:>8} {:>7} {:>7} {:>7}  class (at a score of {})\n",
                      "AP",
                      "precision",
                      "recall",
                      "F1",
                      "right",
                      "wrong",
                      "missed",
                      kSaidScore);
  for (std::size_t label = 0; label < judged.size(); ++label) {
    const FoundCounts counts = counts_of(judged[label]);
    text += fmt::format("{:>8} {:>9} {:>8} {:>8} {:>7} {:>7} {:>7}  {}\n",
                        shown(plain.darknet_of_classes[label]),
                        shown(counts.precision()),
                        shown(counts.recall()),
                        shown(counts.f1()),
                        counts.right,
                        counts.wrong,
                        counts.missed,
                        printable(class_name(names, label)));
  }
  return text;
}

void add_detection(ordered_json& json,
                   const DetectionMetrics& metrics,
                   const std::vector<std::string>& names) {
  const std::vector<JudgedClass>& judged = metrics.judged();
  const CocoFigures coco = coco_figures(judged);
  const PlainFigures plain = plain_figures(judged);
  json["coco"] = {{"AP", or_null<ordered_json>(coco.ap)},
                  {"AP50", or_null<ordered_json>(coco.ap_at_50)},
                  {"AP75", or_null<ordered_json>(coco.ap_at_75)},
                  {"APs", or_null<ordered_json>(coco.ap_small)},
                  {"APm", or_null<ordered_json>(coco.ap_medium)},
                  {"APl", or_null<ordered_json>(coco.ap_large)},
                  {"AR1", or_null<ordered_json>(coco.recall_1)},
                  {"AR10", or_null<ordered_json>(coco.recall_10)},
                  {"AR100", or_null<ordered_json>(coco.recall_100)},
                  {"ARs", or_null<ordered_json>(coco.recall_small)},
                  {"ARm", or_null<ordered_json>(coco.recall_medium)},
                  {"ARl", or_null<ordered_json>(coco.recall_large)}};
  json["voc_11_points"] = or_null<ordered_json>(plain.voc_11_points);
  json["voc_all_points"] = or_null<ordered_json>(plain.voc_all_points);
  json["classes"] = ordered_json::array();
  for (std::size_t label = 0; label < judged.size(); ++label) {
    const FoundCounts counts = counts_of(judged[label]);
    json["classes"].push_back({{"class", label},
                               {"name", class_name(names, label)},
                               {"objects", judged[label].true_boxes()},
                               {"ap50", or_null<ordered_json>(plain.darknet_of_classes[label])},
                               {"precision", number_or_null(counts.precision())},
                               {"recall", number_or_null(counts.recall())},
                               {"f1", number_or_null(counts.f1())},
                               {"right", counts.right},
                               {"wrong", counts.wrong},
                               {"missed", counts.missed}});
  }
}

}  // namespace tessera::engine
