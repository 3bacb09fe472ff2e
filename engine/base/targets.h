// What the images of a batch are judged by: the class of each, or boxes around what is on it.

#pragma once

#include <compare>
#include <optional>
#include <vector>

#include "partitioner/base/region.h"

namespace tessera::engine {

// An object on an image: in fractions of the image's width and height, from its left upper corner.
template <class Number>
struct BasicBox {
  int label = 0;  // the class of the object
  Number centre_x = 0;
  Number centre_y = 0;
  Number width = 0;
  Number height = 0;
  // Not learnt, and in tests neither right nor wrong: what VOC calls difficult, and COCO's crowds.
  bool ignored = false;
  friend bool operator==(const BasicBox&, const BasicBox&) = default;
};
using Box = BasicBox<float>;         // as data sets have it
using TargetBox = BasicBox<double>;  // as it is learnt

template <class To, class From>
[[nodiscard]] BasicBox<To> converted(const BasicBox<From>& box) {
  return {box.label,
          static_cast<To>(box.centre_x),
          static_cast<To>(box.centre_y),
          static_cast<To>(box.width),
          static_cast<To>(box.height),
          box.ignored};
}

// What one image is judged by. Without a label its class is not known: it has no part in a loss of
// classes.
struct ImageTargets {
  std::optional<int> label = {};  // the class of the image
  std::vector<TargetBox> boxes = {};
  friend bool operator==(const ImageTargets&, const ImageTargets&) = default;
};

// By place in the batch; nothing at places that no picture is left for.
using Targets = std::vector<std::optional<ImageTargets>>;

// A cell of a detector's head.
struct CellPlace {
  Index row = 0;
  Index col = 0;
  friend auto operator<=>(const CellPlace&, const CellPlace&) = default;
};

// Where objects are assigned by what the cells of all heads say: a cell that may have got one.
struct AssignedCell {
  CellPlace at;
  int object = 0;  // its number among those of the image that count, or kNoObject
};
inline constexpr int kNoObject = -1;

// Of a head, by image of a pass: those that the rank owns.
using HeadAssignment = std::vector<std::vector<AssignedCell>>;

// The targets of images that each have one class.
[[nodiscard]] inline Targets class_targets(const std::vector<int>& labels) {
  Targets targets;
  targets.reserve(labels.size());
  for (const int label : labels) {
    targets.push_back(ImageTargets{.label = label});
  }
  return targets;
}

}  // namespace tessera::engine
