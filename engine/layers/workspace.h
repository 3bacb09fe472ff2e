// How much scratch a layer needs, known from the plan alone.

#pragma once

#include "engine/layers/layer.h"

namespace engine {

// Elements of each array of a Workspace.
struct WorkspaceSize {
  ConvolutionWorkspaceSize convolution;
  Index features = 0;

  [[nodiscard]] Index elements() const { return convolution.elements() + features; }
};

// What the largest need of any layer on `rank` is, array by array. Layers share one workspace.
[[nodiscard]] WorkspaceSize workspace_size(const partitioner::Network& network,
                                           const partitioner::Plan& plan,
                                           int rank,
                                           bool training);

[[nodiscard]] ConvolutionShape convolution_shape(const partitioner::Network& network, int layer);

}  // namespace engine
