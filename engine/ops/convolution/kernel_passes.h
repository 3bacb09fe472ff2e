// What every convolution kernel is given for each pass: the direct ones, the depthwise ones,
// Winograd's and the reference. convolution.cpp chooses among them, and has done what is the same
// for all: no region is empty, and a gradient is assigned only by a kernel that can.
//
// Buffers and what becomes of them are those of convolution.h.

#pragma once

#include "engine/ops/convolution/convolution.h"
#include "engine/ops/simd/block_kernels.h"

namespace tessera::engine {

template <class T>
struct ForwardArguments {
  View<const T> in;
  ForwardFilters<T> filters;
  const ConvolutionOutput<T>& out;
  T* workspace;
};

template <class T>
struct BackwardDataArguments {
  View<const T> out_gradient;
  Filters<T> filters;
  const Region& region;
  const InputGradient<T>& in_gradient;
  T* workspace;
};

template <class T>
struct BackwardWeightsArguments {
  View<const T> in;
  View<const T> out_gradient;
  const Region& region;
  const WeightGradient<T>& gradient;
  T* workspace;

  // Of the region's first filter. `row`: weights of a filter.
  [[nodiscard]] T* weights(Index row) const {
    return gradient.weights + (region.channels.begin - gradient.first) * row;
  }
  // What brings sums (terms, filters) there: adds, or assigns.
  [[nodiscard]] auto put_transposed() const {
    return gradient.assign ? block_kernels<T>().transpose : block_kernels<T>().add_transposed;
  }
};

}  // namespace tessera::engine
