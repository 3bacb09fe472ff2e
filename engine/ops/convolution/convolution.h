// Convolution of any filter, stride, padding and grouping, on blocked views and any region of the
// map, by one of several kernels.
//
// out[n][k][row][col] = bias[k] + sum over c, fh, fw of weight[k][c][fh][fw] * in[n][c][row *
// stride + fh * dilation - padding][...] with c over the channels of k's group. Padding is part of
// the input view: cells outside the map, holding 0.

#pragma once

#include <functional>
#include <vector>

#include "engine/base/tensor.h"
#include "engine/ops/pool/pool.h"
#include "partitioner/partition/kernels.h"

namespace tessera::engine {

using partitioner::ConvolutionKernel;
using partitioner::ConvolutionKernels;

using partitioner::PerAxis;
using partitioner::WindowAxis;

struct ConvolutionShape {
  Index filters = 0;   // K, of the whole layer
  Index channels = 0;  // C
  PerAxis size = 1;    // FH x FW
  PerAxis stride = 1;
  PerAxis padding = 0;
  Index groups = 1;
  Index dilation = 1;

  [[nodiscard]] WindowAxis rows() const { return {size.rows, stride.rows, padding.rows, dilation}; }
  [[nodiscard]] WindowAxis cols() const { return {size.cols, stride.cols, padding.cols, dilation}; }

  [[nodiscard]] Index group_filters() const { return filters / groups; }
  [[nodiscard]] Index group_channels() const { return channels / groups; }
  [[nodiscard]] Index taps() const { return size.product(); }
  [[nodiscard]] Index row() const { return group_channels() * taps(); }  // weights of a filter
};

// What is computed, and how.
struct ConvolutionMethod {
  ConvolutionShape shape;
  ConvolutionKernels kernels;
};

enum class ConvolutionPass { Forward, BackwardData, BackwardWeights };

// Elements of scratch that a pass by a kernel needs for the outputs `region`, or any part of its
// images, rows and columns: forward, those that are computed; backward, those whose gradients there
// are.
[[nodiscard]] Index convolution_workspace(ConvolutionKernel kernel,
                                          ConvolutionPass pass,
                                          const ConvolutionShape& shape,
                                          const Region& region);

// Elements of scratch that the passes need: forward for `computed`, and for `backward`, which is
// empty where there is no backward pass. Without `to_data` there is no gradient of the input.
[[nodiscard]] Index convolution_workspace(const ConvolutionMethod& method,
                                          const Region& computed,
                                          const Region& backward,
                                          bool to_data = true);

// Called once for each line of an output, or each of some parts of its channels, or for a few rows
// at once, when their cells are there: by the thread that has them at hand.
using LineDone = std::function<void(const Range& channels, Index image, const Range& rows)>;

// Where outputs go.
template <class T>
struct ConvolutionOutput {
  View<T> cells;
  Region region;
  LineDone done = {};  // or none
};

// For the filters of out.region.channels: `weight` is (filters, C/groups, FH, FW), `bias` is
// (filters) or null.
template <class T>
struct ForwardFilters {
  const T* weight = nullptr;
  const T* bias = nullptr;
  bool prepared = false;  // by convolution_prepare()
};

// Brings `filters` filters into the workspace as the kernel takes them there for every part of a
// tile, where it does: else returns false.
template <class T>
[[nodiscard]] bool convolution_prepare(const ConvolutionMethod& method,
                                       const T* weight,
                                       Index filters,
                                       T* workspace);

// Assigns out.cells on out.region. `workspace` has the elements that convolution_workspace() says,
// aligned.
template <class T>
void convolution_forward(const ConvolutionMethod& method,
                         View<const T> in,
                         const ForwardFilters<T>& filters,
                         const ConvolutionOutput<T>& out,
                         T* workspace);

// Weights (filters, C/groups, FH, FW) of the filters from `first` on.
template <class T>
struct Filters {
  const T* weight = nullptr;
  Index first = 0;
};

// The gradient of an input, of which the cells inside `map` are wanted.
template <class T>
struct InputGradient {
  View<T> cells;
  Region map;
  bool assign = false;  // else there is something in it already, to be added to
};

// Adds to the input's gradient what the output gradient on `region` says of it, or assigns.
template <class T>
void convolution_backward_data(const ConvolutionMethod& method,
                               View<const T> out_gradient,
                               const Filters<T>& filters,
                               const Region& region,
                               const InputGradient<T>& in_gradient,
                               T* workspace);

// Gradients of an output that nobody else needs, so that they are made a piece at a time.
template <class T>
struct MadeGradient {
  // Assigns `to` (cols, cells.block) the gradients of a block of channels in a piece of a line. By
  // several threads at once.
  using Make =
      std::function<void(const Range& channels, Index image, Index row, const Range& cols, T* to)>;

  View<const T> cells;  // what they are made of, which lies as they would
  Make make;
};

// Whether the gradient of the method's weights can do with gradients that are made on the way.
template <class T>
[[nodiscard]] bool takes_made_gradient(const ConvolutionMethod& method,
                                       const View<const T>& in,
                                       const View<const T>& out_gradient,
                                       const Region& region);

// The gradient of weights (filters, C/groups, FH, FW) of the filters from `first` on.
template <class T>
struct WeightGradient {
  T* weights = nullptr;
  Index first = 0;
  bool assign = false;  // see assigns_all_weights(); else there is something in it already
};

// As below, where takes_made_gradient(), never assigned; sums are in another order.
template <class T>
void convolution_backward_weights(const ConvolutionMethod& method,
                                  View<const T> in,
                                  const MadeGradient<T>& out_gradient,
                                  const Region& region,
                                  const WeightGradient<T>& weight_gradient);

// The gradient of an output that a max-pool takes, whose windows do not overlap: of the pool's
// windows, or of the output's cells, of which all but the argmax cells have none.
enum class GradientOf { Windows, Cells };
template <class T>
struct ArgmaxGradient {
  PoolSite site;
  View<const T> gradient;
  View<const ArgmaxOffset> argmax;
  GradientOf kind = GradientOf::Windows;
};

// As below, of a layer that partitioner::weights_from_argmax(), never assigned; sums are in another
// order.
template <class T>
void convolution_backward_weights(const ConvolutionMethod& method,
                                  View<const T> in,
                                  const ArgmaxGradient<T>& out_gradient,
                                  const Region& region,
                                  const WeightGradient<T>& weight_gradient);

// Whether the method can assign the gradient of the weights of the region's channels.
template <class T>
[[nodiscard]] bool assigns_all_weights(const ConvolutionMethod& method,
                                       const View<const T>& in,
                                       const View<const T>& out_gradient,
                                       const Region& region);

// Adds to the gradient of the weights what the output gradient on `region` says of it, or assigns.
template <class T>
void convolution_backward_weights(const ConvolutionMethod& method,
                                  View<const T> in,
                                  View<const T> out_gradient,
                                  const Region& region,
                                  const WeightGradient<T>& weight_gradient,
                                  T* workspace);

}  // namespace tessera::engine
