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
              out_row * shape.stride.rows + fh - shape.padding.rows,
              out_col * shape.stride.cols + fw - shape.padding.cols,
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
void reference_forward(const ConvolutionShape& shape,
                       View<const T> in,
                       const T* weight,
                       const T* bias,
                       const ConvolutionOutput<T>& out) {
  const Region& region = out.region;
  for_each_cell(region, [&](Index n, Index k, Index row, Index col) {
    const Index filter = k - region.channels.begin;
    T sum{};
    for_each_term(shape, k, row, col, [&](Index c, Index in_row, Index in_col, Index term) {
      sum += weight[filter * shape.row() + term] * in.at(n, c, in_row, in_col);
    });
    out.cells.at(n, k, row, col) = bias == nullptr ? sum : sum + bias[filter];
    if (out.done && col == region.cols.end - 1) {
      out.done({k, k + 1}, n, row);
    }
  });
}

template <class T>
void reference_backward_data(const ConvolutionShape& shape,
                             View<const T> out_gradient,
                             const Filters<T>& filters,
                             const Region& region,
                             const InputGradient<T>& in_gradient) {
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
void reference_backward_weights(const ConvolutionShape& shape,
                                View<const T> in,
                                View<const T> out_gradient,
                                const Region& region,
                                Index first_filter,
                                T* weight_gradient) {
  for_each_cell(region, [&](Index n, Index k, Index row, Index col) {
    const T gradient = out_gradient.at(n, k, row, col);
    T* weight = weight_gradient + (k - first_filter) * shape.row();
    for_each_term(shape, k, row, col, [&](Index c, Index in_row, Index in_col, Index term) {
      weight[term] += gradient * in.at(n, c, in_row, in_col);
    });
  });
}

template void reference_forward<float>(const ConvolutionShape&,
                                       View<const float>,
                                       const float*,
                                       const float*,
                                       const ConvolutionOutput<float>&);
template void reference_backward_data<float>(const ConvolutionShape&,
                                             View<const float>,
                                             const Filters<float>&,
                                             const Region&,
                                             const InputGradient<float>&);
template void reference_backward_weights<float>(
    const ConvolutionShape&, View<const float>, View<const float>, const Region&, Index, float*);
template void reference_forward<double>(const ConvolutionShape&,
                                        View<const double>,
                                        const double*,
                                        const double*,
                                        const ConvolutionOutput<double>&);
template void reference_backward_data<double>(const ConvolutionShape&,
                                              View<const double>,
                                              const Filters<double>&,
                                              const Region&,
                                              const InputGradient<double>&);
template void reference_backward_weights<double>(
    const ConvolutionShape&, View<const double>, View<const double>, const Region&, Index, double*);

}  // namespace tessera::engine
