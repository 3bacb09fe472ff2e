#include "engine/ops/batch_norm.h"

#include <array>

#include "engine/ops/lines.h"

namespace engine {

namespace {

// Sums per channel what `line(run, n, row, sums)` adds to sums[lane] of each line; lines are summed
// apart and then added in their order, whichever thread had them.
template <class Value, class Line>
std::vector<Value> sum_lines(const Region& region, const std::vector<Range>& runs, Line line) {
  const Index rows = region.rows.size();
  const Index channels = region.channels.size();
  const Index lines = region.images.size() * rows;
  std::vector<Value> partial(static_cast<std::size_t>(lines * channels));
  for_each_line(region, runs, [&](const Range& run, Index n, Index row) {
    const Index at = (n - region.images.begin) * rows + row - region.rows.begin;
    line(run, n, row, partial.data() + at * channels + run.begin - region.channels.begin);
  });
  std::vector<Value> totals(static_cast<std::size_t>(channels));
  for (Index at = 0; at < lines; ++at) {
    for (Index c = 0; c < channels; ++c) {
      totals[static_cast<std::size_t>(c)] += partial[static_cast<std::size_t>(at * channels + c)];
    }
  }
  return totals;
}

}  // namespace

Moments merge(const Moments& a, const Moments& b) {
  if (a.count == 0) {
    return b;
  }
  if (b.count == 0) {
    return a;
  }
  const double count = a.count + b.count;
  const double delta = b.mean - a.mean;
  return {count,
          a.mean + delta * b.count / count,
          a.squares + b.squares + delta * delta * a.count * b.count / count};
}

template <class T>
std::vector<Moments> channel_moments(View<const T> in, const Region& region) {
  if (region.empty()) {
    return {};
  }
  const auto runs = channel_runs(region.channels, in);
  const Index cells = region.volume() / region.channels.size();
  const double count = static_cast<double>(cells);
  const auto sums =
      sum_lines<double>(region, runs, [&](const Range& run, Index n, Index row, double* sum) {
        const T* x = line_start(in, run, n, row, region.cols.begin);
        for (Index col = 0; col < region.cols.size(); ++col) {
          for_each_lane(run.size(),
                        [&](Index l) { sum[l] += static_cast<double>(x[col * in.block + l]); });
        }
      });
  std::vector<Moments> moments(sums.size());
  for (std::size_t c = 0; c < sums.size(); ++c) {
    moments[c] = {count, sums[c] / count, 0};
  }
  const auto squares =
      sum_lines<double>(region, runs, [&](const Range& run, Index n, Index row, double* sum) {
        const T* x = line_start(in, run, n, row, region.cols.begin);
        const Moments* of = moments.data() + run.begin - region.channels.begin;
        for (Index col = 0; col < region.cols.size(); ++col) {
          for_each_lane(run.size(), [&](Index l) {
            const double deviation = static_cast<double>(x[col * in.block + l]) - of[l].mean;
            sum[l] += deviation * deviation;
          });
        }
      });
  for (std::size_t c = 0; c < squares.size(); ++c) {
    moments[c].squares = squares[c];
  }
  return moments;
}

template <class T>
void normalize_forward(View<const T> in,
                       const Region& region,
                       const Normalization<T>& by,
                       View<T> out) {
  with_activation(by.activation, [&](auto function) {
    for_each_line(
        region, channel_runs(region.channels, in, out), [&](const Range& run, Index n, Index row) {
          const T* x = line_start(in, run, n, row, region.cols.begin);
          T* y = line_start(out, run, n, row, region.cols.begin);
          const ChannelNorm<T>* norm = by.norms.data() + run.begin - by.first;
          const T* a = by.scale + run.begin - by.first;
          const T* b = by.shift + run.begin - by.first;
          for (Index col = 0; col < region.cols.size(); ++col) {
            for_each_lane(run.size(), [&](Index l) {
              const T normal = (x[col * in.block + l] - norm[l].mean) * norm[l].inverse_deviation;
              y[col * out.block + l] = function.value(normal * a[l] + b[l]);
            });
          }
        });
  });
}

template <class T>
std::vector<NormGradient> normalize_backward_sums(View<const T> in,
                                                  View<const T> out,
                                                  const Region& region,
                                                  const Normalization<T>& by,
                                                  View<T> gradient) {
  if (region.empty()) {
    return {};
  }
  std::vector<NormGradient> sums;
  const auto runs = channel_runs(region.channels, in, out, gradient);
  with_activation(by.activation, [&](auto function) {
    sums = sum_lines<NormGradient>(
        region, runs, [&](const Range& run, Index n, Index row, NormGradient* sum) {
          const T* x = line_start(in, run, n, row, region.cols.begin);
          const T* y = line_start(out, run, n, row, region.cols.begin);
          T* g = line_start(gradient, run, n, row, region.cols.begin);
          const ChannelNorm<T>* norm = by.norms.data() + run.begin - by.first;
          const T* a = by.scale + run.begin - by.first;
          const T* b = by.shift + run.begin - by.first;
          for (Index col = 0; col < region.cols.size(); ++col) {
            for_each_lane(run.size(), [&](Index l) {
              const T normal = (x[col * in.block + l] - norm[l].mean) * norm[l].inverse_deviation;
              T& cell = g[col * gradient.block + l];
              cell *= function.slope(normal * a[l] + b[l], y[col * out.block + l]);
              sum[l].shift += static_cast<double>(cell);
              sum[l].scale += static_cast<double>(cell) * static_cast<double>(normal);
            });
          }
        });
  });
  return sums;
}

template <class T>
void normalize_backward(View<const T> in,
                        const Region& region,
                        const Normalization<T>& by,
                        const StatisticsGradient& statistics,
                        View<T> gradient) {
  const Region& owned = statistics.owned;
  const double count = statistics.count;
  const bool constant = count == 0;
  const auto runs = channel_runs(region.channels, in, gradient);
  for_each_line(region, runs, [&](const Range& run, Index n, Index row) {
    const auto lanes = static_cast<std::size_t>(run.size());
    std::array<T, 16> factor{};
    std::array<T, 16> mean{};
    std::array<T, 16> shift{};
    std::array<T, 16> slope{};
    for (std::size_t l = 0; l < lanes; ++l) {
      const auto c = static_cast<std::size_t>(run.begin - by.first) + l;
      factor[l] = by.norms[c].inverse_deviation * by.scale[c];
      mean[l] = by.norms[c].mean;
      const bool lane_owned = static_cast<Index>(c) + by.first >= owned.channels.begin &&
                              static_cast<Index>(c) + by.first < owned.channels.end;
      if (!constant && lane_owned) {
        shift[l] = static_cast<T>(statistics.totals[c].shift / count);
        slope[l] = static_cast<T>(statistics.totals[c].scale / count *
                                  static_cast<double>(by.norms[c].inverse_deviation));
      }
    }
    const bool row_owned = !constant && n >= owned.images.begin && n < owned.images.end &&
                           row >= owned.rows.begin && row < owned.rows.end;
    const T* x = line_start(in, run, n, row, region.cols.begin);
    T* g = line_start(gradient, run, n, row, region.cols.begin);
    const Range mine = row_owned ? intersect(region.cols, owned.cols) : Range{};
    for (Index col = 0; col < region.cols.size(); ++col) {
      const Index at = region.cols.begin + col;
      if (at >= mine.begin && at < mine.end) {
        for_each_lane(run.size(), [&](Index lane) {
          const auto l = static_cast<std::size_t>(lane);
          T& cell = g[col * gradient.block + lane];
          cell = factor[l] * (cell - shift[l] - (x[col * in.block + lane] - mean[l]) * slope[l]);
        });
      } else {
        for_each_lane(run.size(), [&](Index lane) {
          g[col * gradient.block + lane] *= factor[static_cast<std::size_t>(lane)];
        });
      }
    }
  });
}

template std::vector<Moments> channel_moments<float>(View<const float>, const Region&);
template std::vector<Moments> channel_moments<double>(View<const double>, const Region&);
template void normalize_forward<float>(View<const float>,
                                       const Region&,
                                       const Normalization<float>&,
                                       View<float>);
template std::vector<NormGradient> normalize_backward_sums<float>(
    View<const float>, View<const float>, const Region&, const Normalization<float>&, View<float>);
template void normalize_backward<float>(View<const float>,
                                        const Region&,
                                        const Normalization<float>&,
                                        const StatisticsGradient&,
                                        View<float>);
template void normalize_forward<double>(View<const double>,
                                        const Region&,
                                        const Normalization<double>&,
                                        View<double>);
template std::vector<NormGradient> normalize_backward_sums<double>(View<const double>,
                                                                   View<const double>,
                                                                   const Region&,
                                                                   const Normalization<double>&,
                                                                   View<double>);
template void normalize_backward<double>(View<const double>,
                                         const Region&,
                                         const Normalization<double>&,
                                         const StatisticsGradient&,
                                         View<double>);

}  // namespace engine
