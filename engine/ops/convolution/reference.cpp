#include "engine/ops/convolution/reference.h"

namespace tessera::engine {

namespace {

// Calls visit(n, k, row, col) for each cell of a region.
template <class Visit>
void for_each_cell(const Region& region, Visit visit) {
  for (Index n = region.images.begin; n < region.images.end; ++n) {
    for (Index k = region.channels.begin; k < region.channels.end; ++k) {
      for (Index row = region.rows.begin; row < region.rows.end; ++row) {
        for (Index col = region.cols.begin; col < region.cols.end; ++col) {
          visit(n, k, row, col);
        }
      }
    }
  }
}

// Calls visit(c, row, col, term) for the input cells that meet the filter of output channel k at
// output cell (out_row, out_col), and the number of the weight that each meets.
template <class Visit>
void for_each_term(
    const ConvolutionShape& shape, Index k, Index out_row, Index out_col, Visit visit) {
  const Index first = k / shape.group_filters() * shape.group_channels();
  for (Index c = 0; c < shape.group_channels(); ++c) {
    for (Index fh = 0; fh < shape.size.rows; ++fh) {
      for (Index fw = 0; fw < shape.size.cols; ++fw) {
        visit(first + c,
              out_row * shape.stride.rows + fh * shape.dilation - shape.padding.rows,
              out_col * shape.stride.cols + fw * shape.dilation - shape.padding.cols,
              (c * shape.size.rows + fh) * shape.size.cols + fw);
      }
    }
  }
}

bool holds(const Range& range, Index value) {
  return value >= range.begin && value < range.end;
}

}  // namespace

template <class T>
void ReferenceKernel::forward(const ForwardArguments<T>& given) const {
  const View<const T>& in = given.in;
  const T* weight = given.filters.weight;
  const T* bias = given.filters.bias;
  const ConvolutionOutput<T>& out = given.out;
  const Region& region = out.region;
  for_each_cell(region, [&](Index n, Index k, Index row, Index col) {
    const Index filter = k - region.channels.begin;
    T sum{};
    for_each_term(shape, k, row, col, [&](Index c, Index in_row, Index in_col, Index term) {
      sum += weight[filter * shape.row() + term] * in.at(n, c, in_row, in_col);
    });
    out.cells.at(n, k, row, col) = bias == nullptr ? sum : sum + bias[filter];
    if (out.done && col == region.cols.end - 1) {
      out.done({k, k + 1}, n, {row, row + 1});
    }
  });
}

template <class T>
void ReferenceKernel::backward_data(const BackwardDataArguments<T>& given) const {
  const View<const T>& out_gradient = given.out_gradient;
  const Filters<T>& filters = given.filters;
  const Region& region = given.region;
  const InputGradient<T>& in_gradient = given.in_gradient;
  for_each_cell(region, [&](Index n, Index k, Index row, Index col) {
    const T gradient = out_gradient.at(n, k, row, col);
    const T* weight = filters.weight + (k - filters.first) * shape.row();
    for_each_term(shape, k, row, col, [&](Index c, Index in_row, Index in_col, Index term) {
      if (holds(in_gradient.map.rows, in_row) && holds(in_gradient.map.cols, in_col)) {
        in_gradient.cells.at(n, c, in_row, in_col) += weight[term] * gradient;
      }
    });
  });
}

template <class T>
void ReferenceKernel::backward_weights(const BackwardWeightsArguments<T>& given) const {
  const View<const T>& in = given.in;
  const View<const T>& out_gradient = given.out_gradient;
  const Region& region = given.region;
  for_each_cell(region, [&](Index n, Index k, Index row, Index col) {
    const T gradient = out_gradient.at(n, k, row, col);
    T* weight = given.weights(shape.row()) + (k - region.channels.begin) * shape.row();
    for_each_term(shape, k, row, col, [&](Index c, Index in_row, Index in_col, Index term) {
      weight[term] += gradient * in.at(n, c, in_row, in_col);
    });
  });
}

template void ReferenceKernel::forward(const ForwardArguments<float>&) const;
template void ReferenceKernel::backward_data(const BackwardDataArguments<float>&) const;
template void ReferenceKernel::backward_weights(const BackwardWeightsArguments<float>&) const;
template void ReferenceKernel::forward(const ForwardArguments<double>&) const;
template void ReferenceKernel::backward_data(const BackwardDataArguments<double>&) const;
template void ReferenceKernel::backward_weights(const BackwardWeightsArguments<double>&) const;

}  // namespace tessera::engine
