// The gradient of a convolution's weights out of the winners of the max-pool behind it, where
// nothing normalises in between: all other outputs have no gradient, so there is less to sum by as
// many times as a window has cells. Vectors hold what a row of taps reads, for one filter at a
// time, whose winners are elsewhere than another's. Only convolution.cpp includes this.

#pragma once

#include "engine/ops/convolution/convolution.h"

namespace tessera::engine {

// With the arguments of convolution_backward_weights(), of a layer that
// partitioner::sums_winners().
template <class T>
void winner_backward_weights(const ConvolutionShape& shape,
                             View<const T> in,
                             const WonGradient<T>& out_gradient,
                             const Region& region,
                             T* weight_gradient);

}  // namespace tessera::engine
