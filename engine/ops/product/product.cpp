#include "engine/ops/product/product.h"

#include <array>

#include "engine/ops/loops/lines.h"
#include "engine/ops/simd/row_kernels.h"

namespace tessera::engine {

namespace {

// Where the factors of a line of the map lie, and from one cell to the next.
template <class Factor>
struct FactorLine {
  Factor* first = nullptr;
  Index cell_step = 0;
};

template <class Factor>
FactorLine<Factor> factor_line(
    Factors kind, const View<Factor>& factors, const Range& run, Index n, Index row, Index col) {
  switch (kind) {
    case Factors::ByValue:
      return {line_start(factors, run, n, row, col), factors.block};
    case Factors::ByChannel:
      return {line_start(factors, run, n, 0, 0), 0};
    case Factors::ByPlace:
      return {factors.cell(n, row, col), factors.block};
  }
  return {};
}

// The channels of a region in runs that lie side by side in all views: a map of one channel lies
// beside nothing.
template <class A, class B, class Factor>
std::vector<Range> runs_of(Factors kind,
                           const Range& channels,
                           const View<A>& a,
                           const View<B>& b,
                           const View<Factor>& factors) {
  return kind == Factors::ByPlace ? channel_runs(channels, a, b)
                                  : channel_runs(channels, a, b, factors);
}

// Calls visit(to, from, factor) for all values of a region.
template <class T, class Visit>
void for_each_value(Factors kind,
                    View<const T> from,
                    View<const T> factors,
                    const Region& region,
                    View<T> to,
                    Visit visit) {
  for_each_line(
      region,
      runs_of(kind, region.channels, from, to, factors),
      [&](const Range& run, Index n, Index row) {
        const Index first = region.cols.begin;
        T* y = line_start(to, run, n, row, first);
        const T* x = line_start(from, run, n, row, first);
        const FactorLine<const T> line = factor_line(kind, factors, run, n, row, first);
        for (Index col = 0; col < region.cols.size(); ++col) {
          const T* factor = line.first + col * line.cell_step;
          T* y_cell = y + col * to.block;
          const T* x_cell = x + col * from.block;
          if (kind == Factors::ByPlace) {
            const T same = *factor;
            for_each_channel(run.size(), [&](Index l) { visit(y_cell[l], x_cell[l], same); });
          } else {
            for_each_channel(run.size(), [&](Index l) { visit(y_cell[l], x_cell[l], factor[l]); });
          }
        }
      });
}

// In double precision, row by row.
template <class T>
void add_channel_sums(View<const T> out_gradient,
                      View<const T> map,
                      const Region& region,
                      View<T> factor_gradient) {
  Region images = region;
  images.rows = {0, 1};
  for_each_line(
      images,
      channel_runs(region.channels, out_gradient, map, factor_gradient),
      [&](const Range& run, Index n, Index) {
        alignas(kAlignment) std::array<double, static_cast<std::size_t>(kMostChannels)> sums{};
        const Index channels = channels_of_block(run, out_gradient, map, factor_gradient);
        for (Index row = region.rows.begin; row < region.rows.end; ++row) {
          row_kernels<T>().add_products({line_start(out_gradient, run, n, row, region.cols.begin),
                                         out_gradient.block,
                                         map.block,
                                         region.cols.size(),
                                         channels},
                                        line_start(map, run, n, row, region.cols.begin),
                                        sums.data());
        }
        T* to = line_start(factor_gradient, run, n, 0, 0);
        for (Index l = 0; l < run.size(); ++l) {
          to[l] += static_cast<T>(sums[static_cast<std::size_t>(l)]);
        }
      });
}

// Likewise, over the channels in their order.
template <class T>
void add_place_sums(View<const T> out_gradient,
                    View<const T> map,
                    const Region& region,
                    View<T> factor_gradient) {
  const auto runs = channel_runs(region.channels, out_gradient, map);
  parallel_for(region.images, region.rows, [&](Index n, Index row) {
    for (Index col = region.cols.begin; col < region.cols.end; ++col) {
      double sum = 0;
      for (const Range& run : runs) {
        const T* gradient = line_start(out_gradient, run, n, row, col);
        const T* x = line_start(map, run, n, row, col);
        for (Index l = 0; l < run.size(); ++l) {
          sum += static_cast<double>(gradient[l]) * static_cast<double>(x[l]);
        }
      }
      factor_gradient.at(n, 0, row, col) += static_cast<T>(sum);
    }
  });
}

}  // namespace

template <class T>
void multiply_forward(
    Factors kind, View<const T> map, View<const T> factors, const Region& region, View<T> out) {
  for_each_value<T>(
      kind, map, factors, region, out, [](T& to, T from, T factor) { to = from * factor; });
}

template <class T>
void multiply_backward_map(Factors kind,
                           View<const T> out_gradient,
                           View<const T> factors,
                           const Region& region,
                           View<T> map_gradient,
                           bool assign) {
  if (assign) {
    multiply_forward<T>(kind, out_gradient, factors, region, map_gradient);
    return;
  }
  for_each_value<T>(kind, out_gradient, factors, region, map_gradient, [](T& to, T from, T factor) {
    to += from * factor;
  });
}

template <class T>
void multiply_backward_factors(Factors kind,
                               View<const T> out_gradient,
                               View<const T> map,
                               const Region& region,
                               View<T> factor_gradient) {
  if (region.empty()) {
    return;
  }
  switch (kind) {
    case Factors::ByValue:
      return multiply_backward_map(kind, out_gradient, map, region, factor_gradient);
    case Factors::ByChannel:
      return add_channel_sums(out_gradient, map, region, factor_gradient);
    case Factors::ByPlace:
      return add_place_sums(out_gradient, map, region, factor_gradient);
  }
}

template void multiply_forward<float>(
    Factors, View<const float>, View<const float>, const Region&, View<float>);
template void multiply_forward<double>(
    Factors, View<const double>, View<const double>, const Region&, View<double>);
template void multiply_backward_map<float>(
    Factors, View<const float>, View<const float>, const Region&, View<float>, bool);
template void multiply_backward_map<double>(
    Factors, View<const double>, View<const double>, const Region&, View<double>, bool);
template void multiply_backward_factors<float>(
    Factors, View<const float>, View<const float>, const Region&, View<float>);
template void multiply_backward_factors<double>(
    Factors, View<const double>, View<const double>, const Region&, View<double>);

}  // namespace tessera::engine
