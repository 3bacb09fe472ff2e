// Heads of detectors: layers that turn the channels of each cell into boxes with a class, and are
// judged by the boxes of an image. What they compute, and what they send back, is Darknet's:
// `region` of YOLOv2 (Redmon, Farhadi 2016) and `detection` of YOLOv1 (Redmon et al. 2015) as
// Redmon's program has them, `yolo` (Redmon, Farhadi 2018; Bochkovskiy et al. 2020) as
// Bochkovskiy's has it; `yolox` is that of its authors.
//
// Channels of `yolo` and `region`: for each anchor of the head x, y, width, height, objectness,
// classes.

#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "partitioner/base/region.h"

namespace tessera::partitioner {

// The size of a box that a head corrects.
struct Anchor {
  double width = 0;
  double height = 0;
  friend bool operator==(const Anchor&, const Anchor&) = default;
};

// What the place and the size of a box are judged by: the squared errors of its four numbers, or
// its IoU with the box of the object (GIoU: Rezatofighi et al. 2019; DIoU and CIoU: Zheng et
// al. 2019).
enum class BoxLoss { SquaredError, Iou, Giou, Diou, Ciou };

// Non-maximum suppression: by IoU, or by DIoU to the power of
// `beta_nms`.
enum class Suppression { Iou, Diou };

struct YoloHead {
  Index classes = 20;
  std::vector<Anchor> anchors = {};  // pixels of the network's input: those of all heads
  std::vector<int> mask = {};        // which of them this head corrects
  Index most_boxes = 200;            // of an image: later ones do not count
  // A cell whose best box has a higher IoU with an object than this, and says a class, is not told
  // that nothing is there.
  double ignore_threshold = 0.5;
  double truth_threshold =
      1;  // more than this: it is told to be that object, whatever cell that lies in
  // Other anchors of the head whose size has a higher IoU with an object's than this learn it, too.
  double iou_threshold = 1;
  BoxLoss iou_threshold_kind = BoxLoss::Iou;
  BoxLoss box_loss = BoxLoss::SquaredError;
  double iou_normalizer = 0.75;  // what the gradients of boxes are multiplied by
  double class_normalizer = 1;   // of classes, where there are class_weights
  double object_normalizer = 1;
  double most_delta = std::numeric_limits<double>::infinity();  // of the gradients of IoUs
  double scale_xy = 1;      // x and y may leave the cell by half of (scale_xy - 1)
  bool new_coords = false;  // inputs are activated already, and width and height are squares
  bool objectness_smooth = false;
  double label_smoothing = 0;
  bool focal_loss = false;
  std::vector<double> class_weights = {};  // by class; none: all 1
  Suppression suppression = Suppression::Iou;
  double beta_nms = 0.6;
  friend bool operator==(const YoloHead&, const YoloHead&) = default;
};

struct RegionHead {
  Index classes = 20;
  std::vector<Anchor> anchors = {};  // cells of the head's map
  Index most_boxes = 30;
  bool softmax = false;  // over classes; else each class is a logistic of its own
  bool match_anchors =
      false;  // an object belongs to the anchor most like it, not to the box most like it
  bool rescore = false;    // objectness is to be the IoU
  double threshold = 0.5;  // a higher IoU than this: not told that nothing is there
  double coordinate_scale = 1;
  double object_scale = 1;
  double no_object_scale = 1;
  double class_scale = 1;
  friend bool operator==(const RegionHead&, const RegionHead&) = default;
};

// While the training has seen fewer images than this, boxes of a RegionHead without an object are
// drawn to their anchors.
inline constexpr Index kAnchorWarmUpImages = 12800;

// Reads its input as one vector: the classes of each of side x side cells, objectness of `boxes`
// boxes of each cell, then their x, y, width, height.
struct GridHead {
  Index side = 7;
  Index boxes = 1;
  Index classes = 1;
  bool softmax = false;
  bool square_roots = false;  // width and height are square roots
  bool rescore = false;
  bool forced = false;  // small objects (less than a tenth of the image) belong to the second box
                        // of a cell, others to the first
  double coordinate_scale = 1;
  double object_scale = 1;
  double no_object_scale = 1;
  double class_scale = 1;
  friend bool operator==(const GridHead&, const GridHead&) = default;
};

// YOLOX (Ge et al. 2021): a cell says one box, without anchors, and SimOTA finds by what the cells
// of all such heads say which of them is to become which object. Channels: x, y, logarithms of
// width and height, objectness, classes; none has been through a logistic. x and y are counted in
// cells from the cell's own corner, width and height in cells.
struct YoloxHead {
  Index classes = 80;
  double stride = 0;  // pixels of the input from cell to cell; 0: as many as there are for a cell
  double iou_normalizer = 5;  // what the losses of boxes, objectness and classes are multiplied by
  double object_normalizer = 1;
  double class_normalizer = 1;
  std::optional<bool> l1 = {};  // the L1 loss of boxes counts, too; nothing: at the end of training
  Index most_boxes = 90;        // of an image: later ones do not count
  friend bool operator==(const YoloxHead&, const YoloxHead&) = default;
};

// The cells of a YoloxHead that an object may be given to: those whose middle is nearer to its
// centre than this, across and down.
inline constexpr double kCandidateStrides = 1.5;
inline constexpr Index kCandidatesOfObject = 9;

// Values of a box beside its classes.
inline constexpr Index kBoxValues = 5;          // x, y, width, height, objectness
inline constexpr Index kObjectnessChannel = 4;  // of them

[[nodiscard]] inline Index head_channels(const YoloHead& head) {
  return static_cast<Index>(head.mask.size()) * (kBoxValues + head.classes);
}
[[nodiscard]] inline Index head_channels(const RegionHead& head) {
  return static_cast<Index>(head.anchors.size()) * (kBoxValues + head.classes);
}
[[nodiscard]] inline Index head_channels(const YoloxHead& head) {
  return kBoxValues + head.classes;
}
[[nodiscard]] inline Index head_values(const GridHead& head) {
  return head.side * head.side * (head.classes + head.boxes * kBoxValues);
}

}  // namespace tessera::partitioner
