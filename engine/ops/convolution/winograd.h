// Winograd's convolution F(m x m, 3x3) (Lavin, Gray 2016): 3x3 filters of stride 1 in tiles of m x
// m outputs (m = 2 or 4), with 2.25 or 4 times fewer multiplications than the direct sum, and
// rounding errors that grow with m.
//
// Tiles lie on multiples of m in global coordinates. A cell's bits depend on all of the (m + 2)^2
// inputs of its tile: they are the same for any cut that lies on the grid, and equal to rounding
// for others. Cells outside what a region requires count as 0.

#pragma once

#include "engine/ops/convolution/kernel_passes.h"

namespace tessera::engine {

// A convolution of size 3, stride 1 and one group, in tiles of side x side outputs: m is 2 or 4.
// Assigns gradients of inputs if asked to.
struct WinogradKernel {
  ConvolutionShape shape;
  Index side = 4;

  // Elements of scratch that a pass over the outputs `region`, or any part of its rows and columns,
  // needs.
  [[nodiscard]] Index workspace(const Region& region, ConvolutionPass pass) const;

  // See convolution_prepare().
  template <class T>
  bool prepare(const T* weight, Index filters, T* workspace) const;

  template <class T>
  void forward(const ForwardArguments<T>& given) const;
  template <class T>
  void backward_data(const BackwardDataArguments<T>& given) const;
  template <class T>
  void backward_weights(const BackwardWeightsArguments<T>& given) const;
};

}  // namespace tessera::engine
