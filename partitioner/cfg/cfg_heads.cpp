#include "partitioner/cfg/cfg_heads.h"

#include <algorithm>
#include <string>

namespace tessera::partitioner {

namespace {

// Width and height of each, one after the other.
std::vector<Anchor> read_anchors(CfgOptions& options, Index expected) {
  const std::vector<double> numbers = options.reals("anchors");
  if (static_cast<Index>(numbers.size()) < 2 * expected) {
    options.refuse("anchors",
                   "expected num=" + std::to_string(expected) +
                       " pairs of width and height, found " + std::to_string(numbers.size()) +
                       " numbers");
  }
  if (static_cast<Index>(numbers.size()) > 2 * expected) {
    options.warn("anchors",
                 "num=" + std::to_string(expected) + " pairs of width and height count, of " +
                     std::to_string(numbers.size()) + " numbers: num or anchors is wrong");
  }
  std::vector<Anchor> anchors;
  for (std::size_t i = 0; static_cast<Index>(anchors.size()) < expected; i += 2) {
    anchors.push_back({numbers[i], numbers[i + 1]});
  }
  return anchors;
}

constexpr Index kMostClasses = 1'000'000;
constexpr Index kMostAnchors = 10'000;

BoxLoss read_box_loss(CfgOptions& options, std::string_view key, std::string_view usual) {
  static constexpr std::pair<std::string_view, BoxLoss> kLosses[] = {{"mse", BoxLoss::SquaredError},
                                                                     {"iou", BoxLoss::Iou},
                                                                     {"giou", BoxLoss::Giou},
                                                                     {"diou", BoxLoss::Diou},
                                                                     {"ciou", BoxLoss::Ciou}};
  const std::string name = options.word(key, usual);
  for (const auto& [each, loss] : kLosses) {
    if (name == each) {
      return loss;
    }
  }
  options.refuse(key, "expected mse, iou, giou, diou or ciou");
}

// What objects of each class weigh: the more, the fewer there are.
std::vector<double> read_class_weights(CfgOptions& options, double most) {
  std::vector<double> counts = options.reals("counters_per_class");
  for (double& count : counts) {
    count = std::max(count, 1.0);
  }
  const double largest = counts.empty() ? 1 : *std::max_element(counts.begin(), counts.end());
  for (double& count : counts) {
    count = std::min(largest / count, most);
  }
  return counts;
}

Suppression read_suppression(CfgOptions& options) {
  const std::string kind = options.word("nms_kind", "default");
  if (kind == "diounms") {
    return Suppression::Diou;
  }
  if (kind != "default" && kind != "greedynms" && kind != "cornersnms") {
    options.refuse("nms_kind", "expected default, greedynms, diounms or cornersnms");
  }
  return Suppression::Iou;
}

// What [region] and [detection] have alike.
template <class Head>
void read_region_keys(CfgOptions& options, Head& head) {
  head.softmax = options.flag("softmax", head.softmax);
  head.rescore = options.flag("rescore", head.rescore);
  head.coordinate_scale = options.real("coord_scale", head.coordinate_scale, 0);
  head.object_scale = options.real("object_scale", head.object_scale, 0);
  head.no_object_scale = options.real("noobject_scale", head.no_object_scale, 0);
  head.class_scale = options.real("class_scale", head.class_scale, 0);
}

}  // namespace

ReadLayer read_yolo(CfgOptions& options, int layer) {
  YoloHead head;
  head.classes = options.integer("classes", head.classes, 1, kMostClasses);
  const Index total = options.integer("num", 1, 1, kMostAnchors);
  head.anchors = read_anchors(options, total);
  for (const Index anchor : options.integers("mask")) {
    if (anchor < 0 || anchor >= total) {
      options.refuse("mask", "expected numbers from 0 to " + std::to_string(total - 1));
    }
    head.mask.push_back(static_cast<int>(anchor));
  }
  for (int anchor = 0; !options.has("mask") && anchor < total; ++anchor) {
    head.mask.push_back(anchor);
  }
  head.most_boxes = options.integer("max", head.most_boxes, 1);
  head.ignore_threshold = options.real("ignore_thresh", head.ignore_threshold, 0, 1);
  head.truth_threshold = options.real("truth_thresh", head.truth_threshold, 0, 1);
  head.iou_threshold = options.real("iou_thresh", head.iou_threshold, 0, 1);
  head.iou_threshold_kind = read_box_loss(options, "iou_thresh_kind", "iou");
  head.box_loss = read_box_loss(options, "iou_loss", "mse");
  head.iou_normalizer = options.real("iou_normalizer", head.iou_normalizer, 0);
  head.class_normalizer = options.real("cls_normalizer", head.class_normalizer, 0);
  head.object_normalizer = options.real("obj_normalizer", head.object_normalizer, 0);
  (void)options.real("delta_normalizer", 1);  // Darknet multiplies by it on a GPU only
  head.most_delta = options.real("max_delta", head.most_delta, 0);
  head.scale_xy = options.real("scale_x_y", head.scale_xy);
  head.new_coords = options.flag("new_coords", head.new_coords);
  head.objectness_smooth = options.flag("objectness_smooth", head.objectness_smooth);
  head.label_smoothing = options.real("label_smooth_eps", head.label_smoothing, 0, 1);
  head.focal_loss = options.flag("focal_loss", head.focal_loss);
  head.class_weights = read_class_weights(options, head.most_delta);
  head.suppression = read_suppression(options);
  constexpr double kMostPower = 10;
  head.beta_nms = options.real("beta_nms", head.beta_nms, 0, kMostPower);
  return {head, {layer - 1}};
}

ReadLayer read_region(CfgOptions& options, int layer) {
  RegionHead head;
  head.classes = options.integer("classes", head.classes, 1, kMostClasses);
  head.anchors = read_anchors(options, options.integer("num", 1, 1, kMostAnchors));
  if (options.integer("coords", 4) != 4) {
    options.refuse("coords", "expected 4: x, y, width and height");
  }
  head.most_boxes = options.integer("max", head.most_boxes, 1);
  head.match_anchors = options.flag("bias_match", head.match_anchors);
  head.threshold = options.real("thresh", head.threshold, 0, 1);
  read_region_keys(options, head);
  return {head, {layer - 1}};
}

ReadLayer read_detection(CfgOptions& options, int layer) {
  constexpr Index kMostSide = 1024;
  GridHead head;
  head.side = options.integer("side", head.side, 1, kMostSide);
  head.boxes = options.integer("num", head.boxes, 1, kMostAnchors);
  head.classes = options.integer("classes", head.classes, 1, kMostClasses);
  if (options.integer("coords", 1) != 4) {
    options.refuse("coords", "expected coords=4: x, y, width and height");
  }
  head.square_roots = options.flag("sqrt", head.square_roots);
  head.forced = options.flag("forced", head.forced);
  read_region_keys(options, head);
  return {head, {layer - 1}};
}

ReadLayer read_yolox(CfgOptions& options, int layer) {
  YoloxHead head;
  head.classes = options.integer("classes", head.classes, 1, kMostClasses);
  constexpr double kMostStride = 1 << 20;
  head.stride = options.real("stride", head.stride, 0, kMostStride);
  head.iou_normalizer = options.real("iou_normalizer", head.iou_normalizer, 0);
  head.object_normalizer = options.real("obj_normalizer", head.object_normalizer, 0);
  head.class_normalizer = options.real("cls_normalizer", head.class_normalizer, 0);
  if (options.has("l1")) {
    head.l1 = options.flag("l1", false);
  }
  head.most_boxes = options.integer("max", head.most_boxes, 1);
  return {head, {layer - 1}};
}

}  // namespace tessera::partitioner
