// How many images of a pass each rank has, where a plan cuts images and nothing else: then no map
// travels, and the numbers may change from pass to pass. So ranks that train on their own data
// share out each batch by how much of it lies where.

#pragma once

#include <vector>

#include "partitioner/plan/plan.h"

namespace tessera::partitioner {

// Places of a batch.
struct ImageShare {
  Range owned;
  // The same, or where a rank has no image in this pass one that nobody trains on: it takes part in
  // batch statistics as one that needs them and contributes nothing.
  Range computed;
  friend bool operator==(const ImageShare&, const ImageShare&) = default;
};

// The shares of the ranks, one after the other; `images` of each, none on ranks that have no tile.
[[nodiscard]] std::vector<ImageShare> image_shares(const std::vector<Index>& images,
                                                   const Plan& plan);

// The partition with images cut alone, in all groups alike: `most[r]` of them on rank r, one after
// the other, none where that is 0. Throws InputError, naming `where`, if it cuts anything else or
// has one rank read for all.
[[nodiscard]] Partition with_image_shares(Partition partition,
                                          const std::vector<Index>& most,
                                          const std::string& where);

// Whether each rank computes whole maps of images of its own, the same in all layers.
[[nodiscard]] bool cuts_images_alone(const Network& network, const Plan& plan);

// Gives rank r `images[r]` images of a batch of as many as these are together. `plan` cuts images
// alone. Regions, and messages of batch statistics, are then those of a plan for such shares; what
// else was decided stays: who holds and owns parameters, buffers, other transfers, the schedule.
void set_images(const Network& network, const std::vector<Index>& images, Plan& plan);

}  // namespace tessera::partitioner
