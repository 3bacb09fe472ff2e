// Which convolutions a probe times: those of a model, or a standard set. A trial is a point of a
// profile whose times are still 0.

#pragma once

#include <vector>

#include "engine/ops/convolution/convolution.h"
#include "partitioner/cost/cluster_profile.h"
#include "partitioner/cost/compute_model.h"

namespace tessera::engine {

using partitioner::ConvolutionPoint;

// The same for all probes, so that devices can be compared: 3x3, 64 to 64 channels, by direct and
// by Winograd kernels.
[[nodiscard]] std::vector<ConvolutionPoint> common_trials();

// 1x1, 3x3, 3x3 of stride 2, depthwise, and of a picture; 16 to 512 channels on maps of the sizes
// that such layers have.
[[nodiscard]] std::vector<ConvolutionPoint> standard_trials(
    const std::vector<ConvolutionKernel>& kernels);

// The distinct convolutions of a network, by the kernels that it usually takes: first of a
// sixteenth of their maps, all of them, then of a quarter, then whole; where filters are many,
// before whole maps a third of them over a quarter and over all of the map. After them the same by
// other kernels.
[[nodiscard]] std::vector<ConvolutionPoint> model_trials(
    const partitioner::Network& network, const std::vector<ConvolutionKernel>& kernels);

// Operations of the trial in one pass, as compute_model.h counts them.
[[nodiscard]] double trial_flops(const ConvolutionPoint& trial, partitioner::ConvolutionPass pass);
[[nodiscard]] double trial_flops(const ConvolutionPoint& trial);  // of all three

// The input begins at cell 0, border included.
[[nodiscard]] ConvolutionShape trial_shape(const ConvolutionPoint& trial);
[[nodiscard]] Region trial_output(const ConvolutionPoint& trial);
[[nodiscard]] Region trial_input(const ConvolutionPoint& trial);
// Bytes of maps, gradients, weights and scratch.
[[nodiscard]] Index trial_bytes(const ConvolutionPoint& trial);

struct TrialLimits {
  double seconds = 0;  // of all trials
  Index bytes = 0;     // of one
  double direct_flops_per_s = 0;
  double winograd_flops_per_s = 0;
};

// The trials, in their order, that can each be run twice in the time that there is, and fit into
// memory.
struct TrialChoice {
  std::vector<ConvolutionPoint> chosen;
  std::vector<ConvolutionPoint> left_out;
};
[[nodiscard]] TrialChoice choose_trials(const std::vector<ConvolutionPoint>& wanted,
                                        const TrialLimits& limits);

}  // namespace tessera::engine
