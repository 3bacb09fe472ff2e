// Activations of a region of a map, and their way back.

#pragma once

#include <vector>

#include "engine/base/tensor.h"
#include "partitioner/network/layer_traits.h"

namespace tessera::engine {

using partitioner::Activation;
using partitioner::slope_needs_input;

// Assigns out = activation(in) on the region; in and out may be the same view.
template <class T>
void activate_forward(Activation activation, View<const T> in, const Region& region, View<T> out);

// Multiplies gradient by the slope, on the region, and returns the sum of each channel of it, none
// of an empty region. `in` is looked at only where slope_needs_input.
template <class T>
std::vector<double> activate_backward(Activation activation,
                                      View<const T> in,
                                      View<const T> out,
                                      const Region& region,
                                      View<T> gradient);

}  // namespace tessera::engine
