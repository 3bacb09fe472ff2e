#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/cli/commands.h"
#include "engine/cli/messages.h"
#include "engine/data/sets/coco.h"
#include "engine/detection/average_precision.h"
#include "engine/train/detection_report.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/json_value.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

namespace {

using nlohmann::ordered_json;

// COCO's own sign for nothing to measure.
double or_minus_one(const std::optional<double>& value) {
  return value.value_or(-1);
}

void print_json(const CocoSet& set, const CocoFigures& coco, const PlainFigures& plain) {
  ordered_json json;
  for (const NamedCocoFigure& figure : kCocoFigures) {
    json[figure.name] = or_minus_one(coco.*figure.value);
  }
  json["ap_by_class"] = ordered_json::object();
  for (std::size_t i = 0; i < set.categories.size(); ++i) {
    json["ap_by_class"][set.categories[i].name] = or_null<ordered_json>(coco.ap_of_classes[i]);
  }
  json["ap_by_iou"] = ordered_json::object();
  for (std::size_t i = 0; i < kCocoThresholds; ++i) {
    json["ap_by_iou"][fmt::format("{:.2f}", coco_thresholds()[i])] =
        or_minus_one(coco.ap_at_thresholds[i]);
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
  fmt::print("{}\n", average_precision_table(coco, plain, share));
  fmt::print("     AP  AP50 (Darknet)  class\n");
  for (std::size_t i = 0; i < set.categories.size(); ++i) {
    fmt::print("{:>7}  {:>14}  {}\n",
               share(coco.ap_of_classes[i]),
               share(plain.darknet_of_classes[i]),
               printable(set.categories[i].name));
  }
}

void expect_no_faults(const CocoSet& set, const std::string& path) {
  constexpr std::size_t kShown = 10;
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < std::min(set.faults.size(), kShown); ++i) {
    shown.push_back(set.faults[i].what);
  }
  if (set.faults.size() > kShown) {
    shown.push_back(fmt::format("and {} more faults", set.faults.size() - kShown));
  }
  if (!shown.empty()) {
    throw InputError(path, 0, fmt::format("{}", fmt::join(shown, "; ")));
  }
}

void warn_of_left_out(const CocoFindings& findings, const std::string& path) {
  constexpr std::size_t kShown = 10;
  Index boxes = 0;
  std::vector<std::string> shown;
  for (const auto& [category, count] : findings.left_out) {
    boxes += count;
    if (shown.size() < kShown) {
      shown.push_back(fmt::format("{} of {}", count, category));
    }
  }
  if (boxes > 0) {
    print_warning(fmt::format(
        "{}: boxes of categories that the ground truth does not have are left out: {} ({}{})",
        path,
        boxes,
        fmt::join(shown, ", "),
        findings.left_out.size() > kShown ? ", ..." : ""));
  }
}

// Calls the image of each box by its id: COCO takes them in that order, which decides between boxes
// of one score.
template <class Boxes>
void call_images_by_id(const CocoSet& set, Boxes& boxes) {
  for (auto& box : boxes) {
    box.image = set.images[static_cast<std::size_t>(box.image)].id;
  }
}

}  // namespace

void run_map(const MapCommand& command) {
  CocoSet set = read_coco_set(command.ground_truth);
  expect_no_faults(set, command.ground_truth);
  CocoFindings findings = read_coco_findings(command.detections, set);
  warn_of_left_out(findings, command.detections);
  std::vector<FoundBox>& found = findings.boxes;
  if (const Index pairs = pairs_of(set.objects, found); pairs > kMostPairs) {
    throw InputError(command.detections,
                     0,
                     fmt::format("its boxes and the objects of their images and classes make {} "
                                 "pairs to compare, {} at most: leave out boxes of low scores",
                                 pairs,
                                 kMostPairs));
  }
  call_images_by_id(set, set.objects);
  call_images_by_id(set, found);
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
