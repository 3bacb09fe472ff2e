// What a head of a detector makes of one image: boxes out of the values before it, and, with the
// objects that are on the image, what Darknet sends back for each value. Cell by cell: what is
// owned elsewhere is not needed.
//
// A delta is Darknet's: the direction that a value is to move in. What is sent back of it is for
// squared errors of boxes, objectness and classes minus the gradient of a loss by the value before
// the head's logistic (a `yolo` takes the squared error of x and y as if it were a cross-entropy,
// as Darknet does); for IoUs it is no loss's gradient, see boxes.h.

#pragma once

#include <variant>
#include <vector>

#include "engine/base/targets.h"
#include "engine/base/tensor.h"
#include "partitioner/network/network.h"

namespace tessera::engine {

using DetectorHead = std::variant<partitioner::YoloHead,
                                  partitioner::RegionHead,
                                  partitioner::GridHead,
                                  partitioner::YoloxHead>;

// The head of such a layer. `operation` is one.
[[nodiscard]] DetectorHead head_of(const partitioner::Operation& operation);

struct HeadSite {
  DetectorHead head;
  partitioner::MapShape map;    // of the head
  partitioner::MapShape image;  // the network's input
};

// Whether objects are assigned to its cells by what those of all such heads say.
[[nodiscard]] inline bool is_assigned(const HeadSite& site) {
  return std::holds_alternative<partitioner::YoloxHead>(site.head);
}

[[nodiscard]] HeadSite head_site(const partitioner::Network& network, int layer);

// What a head's cost is made of, of the cells that were looked at. Darknet's cost is the sum of the
// squared deltas; where boxes learn by IoU, it is the sum of those of objectness and
// classes, times the normaliser of objectness, and the mean of 1 - IoU (GIoU's for GIoU, else
// the plain one) over all matches, times the normaliser of boxes.
struct HeadCost {
  double squares = 0;
  double iou_losses = 0;
  Index matches = 0;  // of an object and a box that is to become it, where boxes learn by IoU
  double assigned_losses = 0;  // of heads that objects are assigned to
  Index assigned = 0;          // cells of them that have got an object
};

// What the images of a pass are judged by.
struct JudgedBatch {
  const Targets& targets;
  Index images_seen = 0;                     // of the training, up to this pass and with it
  const HeadAssignment* assigned = nullptr;  // of the head, where objects are assigned
  bool in_last_epochs = false;               // an L1 loss counts that has no key
};

// Assigns `output` on `region`, which has all channels, from the values before the head.
template <class T>
void head_forward(const HeadSite& site, View<const T> input, const Region& region, View<T> output);

// Adds to `input_gradient` what the gradient of the output on `region`, which has all channels,
// says of the values before the head: its true derivative, without any objects.
template <class T>
void head_backward(const HeadSite& site,
                   View<const T> output,
                   View<const T> output_gradient,
                   const Region& region,
                   View<T> input_gradient);

// The deltas of the cells of `region`, which is of one image that has targets and has all channels,
// in (C, H, W) order. Adds to `cost`. Objects that are ignored have no part in it.
template <class T>
[[nodiscard]] std::vector<double> head_deltas(const HeadSite& site,
                                              View<const T> output,
                                              const Region& region,
                                              const JudgedBatch& batch,
                                              HeadCost& cost);

// What is sent back of the deltas of those cells: a `region` multiplies those of x, y and
// objectness by the slopes of their logistics, as Darknet's backward pass does.
template <class T>
[[nodiscard]] std::vector<double> sent_back(const HeadSite& site,
                                            View<const T> output,
                                            const Region& region,
                                            std::vector<double> deltas);

// Calls visit(cells, deltas) for the cells of `owned` of each image that has targets, and returns
// what they cost.
template <class T, class Visit>
HeadCost for_each_judged_image(const HeadSite& site,
                               const JudgedBatch& batch,
                               const Region& owned,
                               View<const T> output,
                               Visit visit) {
  HeadCost cost;
  for (Index n = owned.images.begin; n < owned.images.end && !owned.empty(); ++n) {
    if (batch.targets[static_cast<std::size_t>(n)]) {
      Region cells = owned;
      cells.images = {n, n + 1};
      visit(cells, head_deltas(site, output, cells, batch, cost));
    }
  }
  return cost;
}

}  // namespace tessera::engine
