// What the images of a batch are judged by: the class of each, or boxes around what is on it.

#pragma once

#include <optional>
#include <vector>

namespace tessera::engine {

// An object on an image: in fractions of the image's width and height, from its left upper corner.
struct Box {
  int label = 0;  // the class of the object
  float centre_x = 0;
  float centre_y = 0;
  float width = 0;
  float height = 0;
  // Not learnt, and in tests neither right nor wrong: what VOC calls difficult, and COCO's crowds.
  bool ignored = false;
  friend bool operator==(const Box&, const Box&) = default;
};

// What one image is judged by. Without a label its class is not known: it has no part in a loss of
// classes.
struct ImageTargets {
  std::optional<int> label = {};  // the class of the image
  std::vector<Box> boxes = {};
  friend bool operator==(const ImageTargets&, const ImageTargets&) = default;
};

// By place in the batch; nothing at places that no picture is left for.
using Targets = std::vector<std::optional<ImageTargets>>;

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
