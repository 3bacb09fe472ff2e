// Convolution of any filter, stride, padding and grouping, on blocked views and any region of the
// map, by one of several kernels.
//
// out[n][k][row][col] = bias[k] + sum over c, fh, fw of weight[k][c][fh][fw] * in[n][c][row *
// stride + fh - padding][...] with c over the channels of k's group. Padding is part of the input
// view: cells outside the map, holding 0.

#pragma once

#include <vector>

#include "engine/tensor.h"
#include "partitioner/kernels.h"

namespace engine {

using partitioner::ConvolutionKernel;
using partitioner::ConvolutionKernels;

struct ConvolutionShape {
  Index filters = 0;   // K, of the whole layer
  Index channels = 0;  // C
  Index size = 1;
  Index stride = 1;
  Index padding = 0;
  Index groups = 1;

  [[nodiscard]] Index group_filters() const { return filters / groups; }
  [[nodiscard]] Index group_channels() const { return channels / groups; }
  [[nodiscard]] Index taps() const { return size * size; }
  [[nodiscard]] Index row() const { return group_channels() * taps(); }  // weights of a filter
};

// What is computed, and how.
struct ConvolutionMethod {
  ConvolutionShape shape;
  ConvolutionKernels kernels;
};

// Elements of each workspace array.
struct ConvolutionWorkspaceSize {
  Index weights = 0;
  Index gradient = 0;
  Index tiles = 0;

  [[nodiscard]] Index elements() const { return weights + gradient + tiles; }
};

// What is enough for either.
[[nodiscard]] ConvolutionWorkspaceSize larger(const ConvolutionWorkspaceSize& a,
                                              const ConvolutionWorkspaceSize& b);

// Scratch that a convolution needs, allocated once for all layers of a rank.
template <class T>
struct ConvolutionWorkspace {
  Array<T> weights;   // packed or transformed
  Array<T> gradient;  // a framed copy of some images of an output gradient
  Array<T> tiles;     // transformed

  ConvolutionWorkspace() = default;
  explicit ConvolutionWorkspace(const ConvolutionWorkspaceSize& size)
      : weights(size.weights), gradient(size.gradient), tiles(size.tiles) {}

  [[nodiscard]] Index bytes() const { return weights.bytes() + gradient.bytes() + tiles.bytes(); }
};

// What the passes need over `filters` (the channels that a rank computes) and, backward, `output`,
// which is empty where there is no backward pass.
[[nodiscard]] ConvolutionWorkspaceSize convolution_workspace(const ConvolutionMethod& method,
                                                             const Range& filters,
                                                             const Region& output);

// `weight` is (filters.size(), C/groups, F, F), `bias` is (filters.size()) or null, for the filters
// of region.channels. Assigns `out` on `region`.
template <class T>
void convolution_forward(const ConvolutionMethod& method,
                         View<const T> in,
                         const T* weight,
                         const T* bias,
                         const Region& region,
                         View<T> out,
                         ConvolutionWorkspace<T>& workspace);

// Weights (filters, C/groups, F, F) of the filters from `first` on.
template <class T>
struct Filters {
  const T* weight = nullptr;
  Index first = 0;
};

// Adds to `in_gradient`, inside `map`, what the output gradient on `region` says of it.
template <class T>
void convolution_backward_data(const ConvolutionMethod& method,
                               View<const T> out_gradient,
                               const Filters<T>& filters,
                               const Region& region,
                               const Region& map,
                               View<T> in_gradient,
                               ConvolutionWorkspace<T>& workspace);

// Adds to weight_gradient, laid out as `weight`, with filters from `first_filter` on.
template <class T>
void convolution_backward_weights(const ConvolutionMethod& method,
                                  View<const T> in,
                                  View<const T> out_gradient,
                                  const Region& region,
                                  Index first_filter,
                                  T* weight_gradient,
                                  ConvolutionWorkspace<T>& workspace);

}  // namespace engine
