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

// Of a convolutional or deconvolutional layer.
[[nodiscard]] ConvolutionShape convolution_shape(const partitioner::Network& network, int layer);

// Elements that the passes of such a layer take by these kernels.
[[nodiscard]] Index convolution_workspace(const partitioner::Network& network,
                                          int layer,
                                          const ConvolutionKernels& kernels,
                                          const partitioner::Tile& tile,
                                          const WorkspaceOptions& options);

}  // namespace tessera::engine
