// A connected layer, on blocked views: a convolution whose window is the whole input map (C, H, W),
// with images in the place of pixels.
//
// out[n][k] = bias[k] + sum over c, h, w of weight[k][c][h][w] * in[n][c][h][w]
//
// Weights are (K, C * H * W), Darknet's flat order of features. Each number has one sum, in one
// order: an output over c, h, w from its bias on, the gradient of an input over k, that of a weight
// over n. So the bits of a cell depend neither on what else is computed with it nor on the number
// of threads.

#pragma once

#include "engine/ops/convolution/convolution.h"
#include "partitioner/network/network.h"

namespace tessera::engine {

// Assigns `out` on `region`, part of the (N, K, 1, 1) output. `in` holds all of the map (C, H, W)
// for its images; `weight` (outputs, C * H * W) and `bias` (outputs), which may be null, are those
// of region.channels.
template <class T>
void connected_forward(const partitioner::MapShape& map,
                       View<const T> in,
                       const T* weight,
                       const T* bias,
                       View<T> out,
                       const Region& region);

// Adds to the input's gradient what the output gradient on `region` says of it, or assigns.
template <class T>
void connected_backward_data(const partitioner::MapShape& map,
                             View<const T> out_gradient,
                             const Filters<T>& weights,
                             const Region& region,
                             const InputGradient<T>& in_gradient);

// Adds what the output gradient on `region` says of the weights to weight_gradient (outputs, C * H
// * W), of the outputs from `first_output` on.
template <class T>
void connected_backward_weights(const partitioner::MapShape& map,
                                View<const T> in,
                                View<const T> out_gradient,
                                const Region& region,
                                Index first_output,
                                T* weight_gradient);

}  // namespace tessera::engine
