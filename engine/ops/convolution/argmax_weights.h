// The gradient of a convolution's weights from the argmax of the max-pool behind it, where nothing
// normalises in between: all other outputs have no gradient, so there is less to sum by as many
// times as a window has cells. Vectors hold what a row of taps reads, for one filter at a time,
// whose argmax cells differ from another's. Only convolution.cpp includes this.

#pragma once

#include "engine/ops/convolution/convolution.h"

namespace tessera::engine {

// With the arguments of convolution_backward_weights(), of a layer that
// partitioner::weights_from_argmax().
template <class T>
void argmax_backward_weights(const ConvolutionShape& shape,
                             View<const T> in,
                             const ArgmaxGradient<T>& out_gradient,
                             const Region& region,
                             T* weight_gradient);

}  // namespace tessera::engine
