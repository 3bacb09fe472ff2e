// Which rank gives the objects of an image to cells, where a network has heads that do so by what
// the cells of all of them say (YoloxHead).

#pragma once

#include <vector>

#include "partitioner/plan/plan.h"

namespace tessera::partitioner {

struct AssignedImages {
  int rank = 0;
  Range images;
};

// All images of a pass, in their order; none without such heads. An image belongs to the rank that
// owns most of the cells that may count; where several own as many, images that follow each other
// are shared out among these.
[[nodiscard]] std::vector<AssignedImages> assigned_images(const Network& network, const Plan& plan);

}  // namespace tessera::partitioner
