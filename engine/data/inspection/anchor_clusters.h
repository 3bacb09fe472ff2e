// Anchors for the heads of a detector: the sizes that the boxes of a data set are most like, by
// k-means with 1 - IoU as distance (Redmon, Farhadi 2017).

#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/data/dataset.h"
#include "partitioner/network/heads.h"

namespace tessera::engine {

struct BoxSides {
  double width = 0;
  double height = 0;
  friend bool operator==(const BoxSides&, const BoxSides&) = default;
};

// Of all boxes, in pixels of an input that pictures are stretched to.
[[nodiscard]] std::vector<BoxSides> box_sizes(const Dataset& dataset, Index rows, Index cols);

// IoU of two boxes with the same centre.
[[nodiscard]] double size_iou(const BoxSides& a, const partitioner::Anchor& b);

// The mean of each size's IoU with the anchor most like it.
[[nodiscard]] double mean_best_iou(std::span<const BoxSides> sizes,
                                   std::span<const partitioner::Anchor> anchors);

// `count` anchors, by area: the best of ten starts. The same sizes, in any order, give the same
// anchors. There must be as many different sizes.
[[nodiscard]] std::vector<partitioner::Anchor> cluster_anchors(std::vector<BoxSides> sizes,
                                                               Index count);

[[nodiscard]] Index different_sizes(const std::vector<BoxSides>& sizes);

// Anchors, given in pixels, as a model file has them: in units of `stride` pixels, rounded to whole
// pixels, of larger units to hundredths.
[[nodiscard]] std::vector<partitioner::Anchor> anchors_as_written(
    std::vector<partitioner::Anchor> anchors, Index stride);
// "10,14,  23,27".
[[nodiscard]] std::string anchors_text(const std::vector<partitioner::Anchor>& as_written,
                                       Index stride);

}  // namespace tessera::engine
