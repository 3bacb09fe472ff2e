#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/cli/commands.h"
#include "engine/data/coco.h"
#include "engine/detection/average_precision.h"
#include "partitioner/base/json_value.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

namespace {

using nlohmann::ordered_json;

struct NamedFigure {
  const char* name;
  std::optional<double> CocoFigures::*value;
  const char* meaning;
};

constexpr NamedFigure kFigures[] = {
    {"AP", &CocoFigures::ap, "mean over overlaps of 0.50 to 0.95"},
    {"AP50", &CocoFigures::ap_at_50, "at an overlap of 0.50"},
    {"AP75", &CocoFigures::ap_at_75, "at an overlap of 0.75"},
    {"APs", &CocoFigures::ap_small, "objects of less than 32 x 32 pixels"},
    {"APm", &CocoFigures::ap_medium, "up to 96 x 96"},
    {"APl", &CocoFigures::ap_large, "larger ones"},
    {"AR1", &CocoFigures::recall_1, "recall with the best box of each image and class"},
    {"AR10", &CocoFigures::recall_10, "with the best 10"},
    {"AR100", &CocoFigures::recall_100, "with the best 100"},
    {"ARs", &CocoFigures::recall_small, "likewise, of small objects"},
    {"ARm", &CocoFigures::recall_medium, "of medium ones"},
    {"ARl", &CocoFigures::recall_large, "of large ones"}};

// COCO's own sign for nothing to measure.
double or_minus_one(const std::optional<double>& value) {
  return value.value_or(-1);
}

void print_json(const CocoSet& set, const CocoFigures& coco, const PlainFigures& plain) {
  ordered_json json;
  for (const NamedFigure& figure : kFigures) {
    json[figure.name] = or_minus_one(coco.*figure.value);
  }
  json["ap_by_class"] = ordered_json::object();
  for (std::size_t i = 0; i < set.categories.size(); ++i) {
    json["ap_by_class"][set.categories[i].name] = or_null<ordered_json>(coco.ap_of_classes[i]);
  }
  json["ap_by_iou"] = ordered_json::object();
  for (std::size_t i = 0; i < kOverlaps; ++i) {
    json["ap_by_iou"][fmt::format("{:.2f}", coco_overlaps()[i])] =
        or_minus_one(coco.ap_at_overlaps[i]);
  }
  json["voc_11_points"] = or_minus_one(plain.voc_11_points);
  json["voc_all_points"] = or_minus_one(plain.voc_all_points);
  json["darknet_map"] = or_minus_one(plain.darknet);
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

std::string share(const std::optional<double>& value) {
  return value ? fmt::format("{:.4f}", *value) : "-";
}

void print_tables(const CocoSet& set,
                  const CocoFigures& coco,
                  const PlainFigures& plain,
                  std::size_t found) {
  fmt::print("{} images, {} objects of {} classes, {} boxes found\n\n",
             set.images.size(),
             set.objects.size(),
             set.categories.size(),
             found);
  for (const NamedFigure& figure : kFigures) {
    fmt::print("{:<6}  {:>7}  {}\n", figure.name, share(coco.*figure.value), figure.meaning);
  }
  fmt::print("\nAt an overlap of 0.50, three ways to take a mean of precision:\n");
  fmt::print("  {:>7}  COCO: at 101 recalls, of at most 100 boxes an image and class\n",
             share(coco.ap_at_50));
  fmt::print("  {:>7}  VOC up to 2009: at 11 recalls; a box counts its last pixel, too\n",
             share(plain.voc_11_points));
  fmt::print("  {:>7}  VOC from 2010: at all recalls\n", share(plain.voc_all_points));
  fmt::print("  {:>7}  Darknet: at all recalls, of plain areas\n", share(plain.darknet));
  fmt::print(
      "COCO gives an object to the best box that is left, VOC and Darknet to the first box that "
      "overlaps most with it.\n\n");
  fmt::print("     AP  AP50 (Darknet)  class\n");
  for (std::size_t i = 0; i < set.categories.size(); ++i) {
    fmt::print("{:>7}  {:>14}  {}\n",
               share(coco.ap_of_classes[i]),
               share(plain.darknet_of_classes[i]),
               printable(set.categories[i].name));
  }
}

}  // namespace

void run_map(const MapCommand& command) {
  const CocoSet set = read_coco_set(command.ground_truth);
  const std::vector<FoundBox> found = read_coco_findings(command.detections, set);
  const std::vector<JudgedClass> judged =
      judge_boxes(set.objects, found, static_cast<Index>(set.categories.size()));
  const CocoFigures coco = coco_figures(judged);
  const PlainFigures plain = plain_figures(judged);
  if (command.json) {
    print_json(set, coco, plain);
  } else {
    print_tables(set, coco, plain, found.size());
  }
}

}  // namespace tessera::engine
