#include "engine/ops/batch_norm.h"

#include <array>

#include "engine/ops/lines.h"
#include "engine/ops/row_kernels.h"

namespace engine {

namespace {

using partitioner::contains;
using partitioner::intersect;

// What `line(run, n, row, values)` says of each line's lanes, (lines, channels): lines are summed
// apart and then added in their order, whichever thread had them.
template <class Value>
class LineValues {
 public:
  LineValues(const Region& region, const std::vector<Range>& runs)
      : region_(region),
        runs_(runs),
        lines_(region.images.size() * region.rows.size()),
        values_(static_cast<std::size_t>(lines_ * region.channels.size())) {}

  template <class Line>
  void compute(Line line) {
    for_each_line(region_, runs_, [&](const Range& run, Index n, Index row) {
      std::array<Value, static_cast<std::size_t>(kMostLanes)> lanes{};
      line(run, n, row, lanes);
      const Index at = (n - region_.images.begin) * region_.rows.size() + row - region_.rows.begin;
      std::copy_n(
          lanes.begin(),
          run.size(),
          values_.begin() + at * region_.channels.size() + run.begin - region_.channels.begin);
    });
  }

  // Of each channel, with `add(total, value)`.
  template <class Add>
  [[nodiscard]] std::vector<Value> total(Add add) const {
    const Index channels = region_.channels.size();
    std::vector<Value> totals(static_cast<std::size_t>(channels));
#pragma omp parallel for schedule(static)
    for (Index c = 0; c < channels; ++c) {
      Value total{};
      for (Index line = 0; line < lines_; ++line) {
        add(total, values_[static_cast<std::size_t>(line * channels + c)]);
      }
      totals[static_cast<std::size_t>(c)] = total;
    }
    return totals;
  }

 private:
  Region region_;
  const std::vector<Range>& runs_;
  Index lines_;
  std::vector<Value> values_;
};

// The lanes of a run out of arrays by channel.
template <class T>
LaneNorms<T> lane_norms(const Normalization<T>& by, const Range& run) {
  LaneNorms<T> lanes;
  for (Index l = 0; l < run.size(); ++l) {
    const Index c = run.begin - by.first + l;
    const ChannelNorm<T>& norm = by.norms[static_cast<std::size_t>(c)];
    lanes.mean[l] = norm.mean;
    lanes.inverse[l] = norm.inverse_deviation;
    lanes.scale[l] = by.scale[c];
    lanes.shift[l] = by.shift[c];
  }
  return lanes;
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
  const double cells = static_cast<double>(region.cols.size());
  LineValues<Moments> lines(region, runs);
  lines.compute([&](const Range& run, Index n, Index row, auto& moments) {
    alignas(kAlignment) double mean[kMostLanes];
    alignas(kAlignment) double squares[kMostLanes];
    row_kernels<T>().moments(line_start(in, run, n, row, region.cols.begin),
                             in.block,
                             region.cols.size(),
                             whole_lanes(run, in),
                             mean,
                             squares);
    for (Index l = 0; l < run.size(); ++l) {
      moments[static_cast<std::size_t>(l)] = {cells, mean[l], squares[l]};
    }
  });
  return lines.total([](Moments& total, const Moments& line) { total = merge(total, line); });
}

template <class T>
void normalize_forward(View<const T> in,
                       const Region& region,
                       const Normalization<T>& by,
                       View<T> out) {
  const auto runs = channel_runs(region.channels, in, out);
  for_each_line(region, runs, [&](const Range& run, Index n, Index row) {
    const LaneNorms<T> norms = lane_norms(by, run);
    row_kernels<T>().normalize({line_start(in, run, n, row, region.cols.begin),
                                in.block,
                                line_start(out, run, n, row, region.cols.begin),
                                out.block,
                                region.cols.size(),
                                whole_lanes(run, in, out),
                                &norms,
                                by.activation});
  });
}

template <class T>
std::vector<NormGradient> normalize_backward_sums(View<const T> in,
                                                  const Region& region,
                                                  const Normalization<T>& by,
                                                  View<T> gradient) {
  if (region.empty()) {
    return {};
  }
  const auto runs = channel_runs(region.channels, in, gradient);
  LineValues<NormGradient> lines(region, runs);
  lines.compute([&](const Range& run, Index n, Index row, auto& sums) {
    const LaneNorms<T> norms = lane_norms(by, run);
    alignas(kAlignment) double shift[kMostLanes] = {};
    alignas(kAlignment) double scale[kMostLanes] = {};
    row_kernels<T>().gradient_sums({line_start(in, run, n, row, region.cols.begin),
                                    in.block,
                                    line_start(gradient, run, n, row, region.cols.begin),
                                    gradient.block,
                                    region.cols.size(),
                                    whole_lanes(run, in, gradient),
                                    &norms,
                                    by.activation},
                                   shift,
                                   scale);
    for (Index l = 0; l < run.size(); ++l) {
      sums[static_cast<std::size_t>(l)] = {shift[l], scale[l]};
    }
  });
  return lines.total([](NormGradient& total, const NormGradient& line) { total += line; });
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
    LaneNorms<T> alone;  // for cells that take nothing that flows through the statistics
    for (Index l = 0; l < run.size(); ++l) {
      const auto c = static_cast<std::size_t>(run.begin - by.first + l);
      alone.scale[l] = by.norms[c].inverse_deviation * by.scale[c];
    }
    LaneNorms<T> together = alone;
    for (Index l = 0; l < run.size(); ++l) {
      const auto c = static_cast<std::size_t>(run.begin - by.first + l);
      if (!constant && contains(owned.channels, {run.begin + l, run.begin + l + 1})) {
        together.mean[l] = by.norms[c].mean;
        together.shift[l] = static_cast<T>(statistics.totals[c].shift / count);
        together.inverse[l] = static_cast<T>(statistics.totals[c].scale / count *
                                             static_cast<double>(by.norms[c].inverse_deviation));
      }
    }
    const bool row_owned =
        !constant && contains(owned.images, {n, n + 1}) && contains(owned.rows, {row, row + 1});
    const Range mine = row_owned ? intersect(region.cols, owned.cols) : Range{};
    const auto apply = [&](const Range& cols, const LaneNorms<T>& norms) {
      if (!cols.empty()) {
        row_kernels<T>().normalize_gradient({line_start(in, run, n, row, cols.begin),
                                             in.block,
                                             line_start(gradient, run, n, row, cols.begin),
                                             gradient.block,
                                             cols.size(),
                                             whole_lanes(run, in, gradient),
                                             &norms});
      }
    };
    if (mine.empty()) {
      apply(region.cols, alone);
      return;
    }
    apply({region.cols.begin, mine.begin}, alone);
    apply(mine, together);
    apply({mine.end, region.cols.end}, alone);
  });
}

template std::vector<Moments> channel_moments<float>(View<const float>, const Region&);
template std::vector<Moments> channel_moments<double>(View<const double>, const Region&);
template void normalize_forward<float>(View<const float>,
                                       const Region&,
                                       const Normalization<float>&,
                                       View<float>);
template std::vector<NormGradient> normalize_backward_sums<float>(View<const float>,
                                                                  const Region&,
                                                                  const Normalization<float>&,
                                                                  View<float>);
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
                                                                   const Region&,
                                                                   const Normalization<double>&,
                                                                   View<double>);
template void normalize_backward<double>(View<const double>,
                                         const Region&,
                                         const Normalization<double>&,
                                         const StatisticsGradient&,
                                         View<double>);

}  // namespace engine
