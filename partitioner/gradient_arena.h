// Where the gradients of maps lie in memory during a backward pass. Each is needed only from the
// layers that read its map down to the layer that makes it, so most of them can take turns in the
// same place.

#pragma once

#include <vector>

#include "partitioner/plan.h"

namespace partitioner {

// The gradient of one buffer. Layers run backward: it is needed from the backward pass of layer
// `from`, which is the network's size for the output, down to that of layer `to`.
struct GradientSlot {
  Index offset = 0;   // scalars from the start of the arena, in whole blocks of channels
  Index scalars = 0;  // 0: nobody wants this gradient
  int from = 0;
  int to = 0;

  // Whether both are needed at some time.
  [[nodiscard]] bool meets(const GradientSlot& other) const {
    return from >= other.to && other.from >= to;
  }
};

struct GradientArena {
  std::vector<GradientSlot> slots;  // by buffer of the plan
  Index scalars = 0;                // of all of it
};

// Of one rank; the gradient of the image is wanted or not.
[[nodiscard]] GradientArena gradient_arena(const Network& network,
                                           const Plan& plan,
                                           int rank,
                                           bool image_gradient);

}  // namespace partitioner
