// Which kernels are fastest on this machine, by trying them: for a plan to be written down, never
// while training, since all ranks have to take the same.

#pragma once

#include "partitioner/plan/plan.h"

namespace tessera::engine {

// The fastest kernel of each pass of each convolution of the plan, timed on random data on the rank
// that computes most of the layer. Takes some times as long as a training step, and memory for one
// layer at a time.
[[nodiscard]] std::vector<partitioner::ConvolutionKernels> fastest_kernels(
    const partitioner::Network& network, const partitioner::Plan& plan);

}  // namespace tessera::engine
