// How long a device takes to compute a region of a layer: from measured convolutions where its
// profile has some, else from its rates.
//
// Work is counted as the kernels do it: whole blocks of channels, and whole Winograd tiles on
// global coordinates. A measured time is turned into a rate of such work; the rate of another shape
// is interpolated between those, its work is counted exactly.

#pragma once

#include "partitioner/cost/cluster_profile.h"
#include "partitioner/plan/plan.h"
#include "partitioner/plan/recomputation.h"

namespace tessera::partitioner {

enum class ConvolutionPass { Forward, BackwardData, BackwardWeights };

// A convolution of a region of the output, by one kernel.
struct ConvolutionTask {
  Convolution shape;
  Index channels = 1;  // of the whole input
  ConvolutionKernel kernel = ConvolutionKernel::Direct;
  ConvolutionPass pass = ConvolutionPass::Forward;
  Region output;
  // Cells that the region's windows cover, inside the map: its gradient is made by BackwardData,
  // the only pass for which it matters.
  Region input;
};

// What was measured at a point. Its input is as large as its windows are.
[[nodiscard]] ConvolutionTask measured_task(const ConvolutionPoint& point, ConvolutionPass pass);

// Operations of the direct sum over the blocks and tiles that the kernel computes.
[[nodiscard]] double counted_flops(const ConvolutionTask& task);

// Multiply-adds of the passes of a convolutional layer in one step, counted like that: forward over
// `computed`, backward over `backward`, of its output. 0 for every other layer.
[[nodiscard]] double step_multiply_adds(const Network& network,
                                        int layer,
                                        const ConvolutionKernels& kernels,
                                        const Region& computed,
                                        const Region& backward);

[[nodiscard]] double convolution_seconds(const DeviceProfile& device, const ConvolutionTask& task);

// One layer on one rank, without messages.
struct LayerSeconds {
  double forward_s = 0;  // of what has weights
  double backward_data_s = 0;
  double backward_weights_s = 0;
  double other_forward_s = 0;  // normalisation and activation, pools and whatever has no weights
  double other_backward_s = 0;

  [[nodiscard]] double total() const {
    return forward_s + backward_data_s + backward_weights_s + other_forward_s + other_backward_s;
  }
};

// Seconds that a layer computes in a step, by pass; the backward pass with what is recomputed for
// it.
struct PassSeconds {
  double forward_s = 0;
  double backward_s = 0;  // without the weights
  double weights_s = 0;   // gradients of weights
};

// What one layer of a recomputed group takes when it runs again. A fused pool takes its time as if
// it ran by itself.
[[nodiscard]] inline double recompute_seconds(const LayerSeconds& layer,
                                              const RecomputedLayer& again) {
  return (again.runs ? layer.forward_s : 0) + (again.output ? layer.other_forward_s : 0);
}

// Forward over `computed`, backward over `backward`, of the layer's output.
[[nodiscard]] LayerSeconds layer_seconds(const Network& network,
                                         int layer,
                                         const ConvolutionKernels& kernels,
                                         const DeviceProfile& device,
                                         const Region& computed,
                                         const Region& backward);

}  // namespace tessera::partitioner
