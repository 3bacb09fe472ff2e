// The definitions of layers, written down cell by cell on plain arrays in double precision: what
// the fast ones are tested against.

#pragma once

#include <algorithm>
#include <vector>

#include "engine/base/tensor.h"
#include "engine/ops/convolution/convolution.h"
#include "partitioner/network/network.h"

namespace tessera::tests {

// A whole map (N, C, H, W); cells outside are read as 0.
struct PlainMap {
  Region region;
  std::vector<double> values;

  explicit PlainMap(const Region& whole)
      : region(whole), values(static_cast<std::size_t>(whole.volume())) {}

  [[nodiscard]] bool holds(Index row, Index col) const {
    return row >= 0 && row < region.rows.end && col >= 0 && col < region.cols.end;
  }
  [[nodiscard]] double& at(Index n, Index c, Index row, Index col) {
    return values[static_cast<std::size_t>(
        ((n * region.channels.end + c) * region.rows.end + row) * region.cols.end + col)];
  }
  [[nodiscard]] double read(Index n, Index c, Index row, Index col) {
    return holds(row, col) ? at(n, c, row, col) : 0;
  }
};

// Calls visit(n, c, row, col) for each cell of a region.
template <class Visit>
void for_each_cell(const Region& region, Visit visit) {
  for (Index n = region.images.begin; n < region.images.end; ++n) {
    for (Index c = region.channels.begin; c < region.channels.end; ++c) {
      for (Index row = region.rows.begin; row < region.rows.end; ++row) {
        for (Index col = region.cols.begin; col < region.cols.end; ++col) {
          visit(n, c, row, col);
        }
      }
    }
  }
}

// Calls visit(weight's index, input channel, input row, input column) for each term of one output
// cell's sum.
template <class Visit>
void for_each_term(
    const engine::ConvolutionShape& shape, Index k, Index row, Index col, Visit visit) {
  const Index group = k / shape.group_filters();
  for (Index c = 0; c < shape.group_channels(); ++c) {
    for (Index fh = 0; fh < shape.size.rows; ++fh) {
      for (Index fw = 0; fw < shape.size.cols; ++fw) {
        visit(((k * shape.group_channels() + c) * shape.size.rows + fh) * shape.size.cols + fw,
              group * shape.group_channels() + c,
              row * shape.stride.rows - shape.padding.rows + fh * shape.dilation,
              col * shape.stride.cols - shape.padding.cols + fw * shape.dilation);
      }
    }
  }
}

inline void naive_convolution(const engine::ConvolutionShape& shape,
                              PlainMap& in,
                              const std::vector<double>& weight,
                              const std::vector<double>& bias,
                              PlainMap& out) {
  for_each_cell(out.region, [&](Index n, Index k, Index row, Index col) {
    double sum = 0;
    for_each_term(shape, k, row, col, [&](Index w, Index c, Index r, Index x) {
      sum += weight[static_cast<std::size_t>(w)] * in.read(n, c, r, x);
    });
    out.at(n, k, row, col) = sum + bias[static_cast<std::size_t>(k)];
  });
}

// Adds what the output gradient on `region` says of input and weights.
inline void naive_convolution_backward(const engine::ConvolutionShape& shape,
                                       const Region& region,
                                       PlainMap& in,
                                       const std::vector<double>& weight,
                                       PlainMap& out_gradient,
                                       PlainMap& in_gradient,
                                       std::vector<double>& weight_gradient) {
  for_each_cell(region, [&](Index n, Index k, Index row, Index col) {
    const double gradient = out_gradient.at(n, k, row, col);
    for_each_term(shape, k, row, col, [&](Index w, Index c, Index r, Index x) {
      if (in.holds(r, x)) {
        weight_gradient[static_cast<std::size_t>(w)] += gradient * in.at(n, c, r, x);
        in_gradient.at(n, c, r, x) += gradient * weight[static_cast<std::size_t>(w)];
      }
    });
  });
}

// Calls visit(weight's index, k, c, output row, output column) for each term that a cell of the
// input adds to a transposed convolution, inside the map or not.
template <class Visit>
void for_each_spread(
    const engine::ConvolutionShape& shape, Index c, Index row, Index col, Visit visit) {
  for (Index k = 0; k < shape.filters; ++k) {
    for (Index fh = 0; fh < shape.size.rows; ++fh) {
      for (Index fw = 0; fw < shape.size.cols; ++fw) {
        visit(static_cast<std::size_t>(
                  ((k * shape.channels + c) * shape.size.rows + fh) * shape.size.cols + fw),
              k,
              row * shape.stride.rows + fh - shape.padding.rows,
              col * shape.stride.cols + fw - shape.padding.cols);
      }
    }
  }
}

inline void naive_deconvolution(const engine::ConvolutionShape& shape,
                                PlainMap& in,
                                const std::vector<double>& weight,
                                const std::vector<double>& bias,
                                PlainMap& out) {
  for_each_cell(out.region, [&](Index n, Index k, Index row, Index col) {
    out.at(n, k, row, col) = bias[static_cast<std::size_t>(k)];
  });
  for_each_cell(in.region, [&](Index n, Index c, Index row, Index col) {
    for_each_spread(shape, c, row, col, [&](std::size_t w, Index k, Index r, Index x) {
      if (out.holds(r, x)) {
        out.at(n, k, r, x) += weight[w] * in.at(n, c, row, col);
      }
    });
  });
}

// Adds what the output gradient on `region` says of input and weights.
inline void naive_deconvolution_backward(const engine::ConvolutionShape& shape,
                                         const Region& region,
                                         PlainMap& in,
                                         const std::vector<double>& weight,
                                         PlainMap& out_gradient,
                                         PlainMap& in_gradient,
                                         std::vector<double>& weight_gradient) {
  for_each_cell(in.region, [&](Index n, Index c, Index row, Index col) {
    for_each_spread(shape, c, row, col, [&](std::size_t w, Index k, Index r, Index x) {
      if (contains(region, Region{{n, n + 1}, {k, k + 1}, {r, r + 1}, {x, x + 1}})) {
        const double gradient = out_gradient.at(n, k, r, x);
        weight_gradient[w] += gradient * in.at(n, c, row, col);
        in_gradient.at(n, c, row, col) += gradient * weight[w];
      }
    });
  });
}

// The first of the largest cells of a window, in raster order, as a flat (row, column) of the map.
[[nodiscard]] inline Index naive_argmax(
    const partitioner::MaxPool& pool, PlainMap& in, Index n, Index c, Index row, Index col) {
  Index argmax = -1;
  double largest = 0;
  const Index first_row = row * pool.stride.rows - pool.padding.rows / 2;
  const Index first_col = col * pool.stride.cols - pool.padding.cols / 2;
  for (Index r = first_row; r < first_row + pool.size; ++r) {
    for (Index x = first_col; x < first_col + pool.size; ++x) {
      if (in.holds(r, x) && (argmax < 0 || in.at(n, c, r, x) > largest)) {
        argmax = r * in.region.cols.end + x;
        largest = in.at(n, c, r, x);
      }
    }
  }
  return argmax;
}

}  // namespace tessera::tests
