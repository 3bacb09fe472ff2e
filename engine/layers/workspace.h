// How much scratch layers need, known from the plan alone.

#pragma once

#include "engine/layers/layer.h"

namespace tessera::engine {

struct WorkspaceOptions {
  bool training = true;         // false: forward only
  bool image_gradient = false;  // the gradient of the network's input is wanted too
};

// Elements that the neediest layer on `rank` takes: layers share one workspace.
[[nodiscard]] Index workspace_elements(const partitioner::Network& network,
                                       const partitioner::Plan& plan,
                                       int rank,
                                       const WorkspaceOptions& options);

// The plan's kernels, those that take more scratch than `bytes` on some rank replaced by ones that
// take less, direct ones in the end. Throws InputError where a layer takes more all the same.
[[nodiscard]] std::vector<ConvolutionKernels> kernels_within(const partitioner::Network& network,
                                                             const partitioner::Plan& plan,
                                                             Index bytes);

[[nodiscard]] ConvolutionShape convolution_shape(const partitioner::Network& network, int layer);

}  // namespace tessera::engine
