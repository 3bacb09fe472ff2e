#include "engine/ops/norm/batch_norm.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/ops/loops/joined_rows.h"
#include "engine/ops/norm/inverse_deviation.h"

namespace tessera::engine {

namespace {

// What Darknet adds to a variance on the way back, in single precision.
constexpr double kDarknetVariance = double{.00001F};

constexpr Index kBroughtCells = 128;  // that are brought through an activation at once

// Assigns `to` the gradients of cells, which lie as these do. Where the activation takes an
// exponential, brings them through it first: the same bits as where that has been done before.
template <class T>
void normalize_cells(const NormalizeGradientRow<T>& row, const BlockNorms<T>& how, T* to) {
  if (!takes_exponential(row.activation)) {
    row_kernels<T>().normalize_gradient(row, how, to);
    return;
  }
  for_each_run(row.cells, kBroughtCells, [&](Index first, Index cells) {
    alignas(kAlignment) T through[kBroughtCells * kMostChannels];
    alignas(kAlignment) double unused[2 * kMostChannels] = {};
    NormalizeGradientRow<T> piece = row;
    piece.x += first * row.x_step;
    piece.gradient += first * row.gradient_step;
    piece.cells = cells;
    row_kernels<T>().gradient_statistics(piece, unused, unused + kMostChannels, through);
    piece.gradient = through;
    piece.activation = partitioner::Activation::Linear;
    row_kernels<T>().normalize_gradient(piece, how, to + first * row.x_step);
  });
}

template <class T>
auto block_norms_by(const Normalization<T>& by) {
  return [&by](const Range& run) { return block_norms(by, run); };
}

}  // namespace

double running_variance(const Moments& moments) {
  return moments.squares / (moments.count > 1 ? moments.count - 1 : moments.count);
}

template <class T>
ChannelNorm<T> batch_norm(const NormRule& rule, const Moments& moments) {
  const T mean = static_cast<T>(moments.mean);
  if (rule.form == partitioner::NormForm::Darknet) {
    const double variance = running_variance(moments);
    const double forward = inverse_deviation(rule, variance);
    const double squared_backward = 1 / (variance + kDarknetVariance);
    return {mean,
            static_cast<T>(forward),
            static_cast<T>(std::sqrt(squared_backward)),
            static_cast<T>(squared_backward / forward)};
  }
  const T factor = static_cast<T>(inverse_deviation(rule, moments.squares / moments.count));
  return {mean, factor, factor, factor};
}

template <class T>
ChannelNorm<T> running_norm(const NormRule& rule, T mean, T variance) {
  const T factor = static_cast<T>(inverse_deviation(rule, static_cast<double>(variance)));
  return {mean, factor, factor, factor};
}

template <class T>
BlockNorms<T> block_norms(const Normalization<T>& by, const Range& run) {
  BlockNorms<T> block;
  for (Index l = 0; l < run.size(); ++l) {
    const Index c = run.begin - by.first + l;
    const ChannelNorm<T>& norm = by.norms[static_cast<std::size_t>(c)];
    block.mean[l] = norm.mean;
    block.inverse[l] = norm.inverse_deviation;
    block.scale[l] = by.scale[c];
    block.shift[l] = by.shift[c];
  }
  return block;
}

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
LineMoments<T>::LineMoments(View<const T> in, const Region& region)
    : in_(in), region_(region), lines_(region) {}

template <class T>
void LineMoments<T>::add(const Range& channels, Index n, const Range& rows) {
  const Range wanted = intersect(channels, region_.channels);
  const Range wanted_rows = intersect(rows, region_.rows);
  if (wanted.empty() || wanted_rows.empty() || !contains(region_.images, {n, n + 1})) {
    return;
  }
  // Rows that follow each other in memory count as the first of them.
  const Index at_once = region_.cols == in_.region.cols ? wanted_rows.size() : 1;
  const Index cells = at_once * region_.cols.size();
  const auto add_run = [&](const Range& run, Index row) {
    alignas(kAlignment) double mean[kMostChannels];
    alignas(kAlignment) double squares[kMostChannels];
    row_kernels<T>().moments(line_start(in_, run, n, row, region_.cols.begin),
                             in_.block,
                             cells,
                             channels_of_block(run, in_),
                             mean,
                             squares);
    std::array<Moments, static_cast<std::size_t>(kMostChannels)> moments;
    for (Index l = 0; l < run.size(); ++l) {
      moments[static_cast<std::size_t>(l)] = {static_cast<double>(cells), mean[l], squares[l]};
    }
    lines_.put(run, n, row, moments.data());
  };
  for (Index row = wanted_rows.begin; row < wanted_rows.end; row += at_once) {
    for_each_channel_run(
        wanted, [&](const Range& run) { add_run(run, row); }, in_);
  }
}

template <class T>
std::vector<Moments> LineMoments<T>::total() const {
  return lines_.total([](Moments& total, const Moments& line) { total = merge(total, line); });
}

template <class T>
std::vector<Moments> channel_moments(View<const T> in, const Region& region) {
  if (region.empty()) {
    return {};
  }
  const Index at_once = rows_at_once(region, in);
  const Region whole = joined(region, at_once);
  LineMoments<T> lines(joined(in, at_once), whole);
  for_each_line(whole, channel_runs(whole.channels, in), [&](const Range& run, Index n, Index row) {
    lines.add(run, n, {row, row + 1});
  });
  return lines.total();
}

template <class T>
void normalize_forward(View<const T> in,
                       const Region& region,
                       const Normalization<T>& by,
                       View<T> out) {
  if (const Index at_once = rows_at_once(region, in, out); at_once > 1) {
    normalize_forward(joined(in, at_once), joined(region, at_once), by, joined(out, at_once));
    return;
  }
  const auto runs = channel_runs(region.channels, in, out);
  const RunValues<BlockNorms<T>> norms(runs, block_norms_by(by));
  for_each_line(region, runs, [&](const Range& run, Index n, Index row) {
    row_kernels<T>().normalize({line_start(in, run, n, row, region.cols.begin),
                                in.block,
                                line_start(out, run, n, row, region.cols.begin),
                                out.block,
                                region.cols.size(),
                                channels_of_block(run, in, out),
                                &norms[run],
                                by.activation});
  });
}

template <class T>
std::vector<NormGradient> normalize_backward_statistics(View<const T> in,
                                                        const Region& region,
                                                        const Normalization<T>& by,
                                                        const GradientLines<T>& gradient,
                                                        const View<T>& through) {
  if (region.empty()) {
    return {};
  }
  // As many rows are summed up together whether the gradients lie in memory or come from a pool.
  const Index at_once = rows_at_once(region, in);
  if (at_once > 1 && gradient.rows_at_once(region, in) == at_once) {
    return normalize_backward_statistics(
        joined(in, at_once),
        joined(region, at_once),
        by,
        gradient.joined(at_once),
        through.data == nullptr ? through : joined(through, at_once));
  }
  const auto runs = gradient.runs(region.channels, in);
  const RunValues<BlockNorms<T>> norms_of_runs(runs, block_norms_by(by));
  LineValues<NormGradient> lines(joined(region, at_once));
  lines.compute(runs, [&](const Range& run, Index n, Index joined_row, auto& sums) {
    const BlockNorms<T>& norms = norms_of_runs[run];
    alignas(kAlignment) double shift[kMostChannels] = {};
    alignas(kAlignment) double scale[kMostChannels] = {};
    const auto add_row = [&](Index row) {
      const ChannelsAt at{run, n, row, gradient.channels(run, in)};
      const auto add_cells = [&](const Range& cols) {
        if (cols.empty()) {
          return;
        }
        gradient.for_each_piece(at, cols, [&](Index col, Index cells, const T* g, Index step) {
          const T* x = line_start(in, run, n, row, col);
          row_kernels<T>().gradient_statistics(
              {x, in.block, g, step, cells, at.channels, &norms, by.activation},
              shift,
              scale,
              through.data == nullptr ? nullptr : line_start(through, run, n, row, col));
        });
      };
      const Range whole = gradient.whole_windows(row, region.cols);
      add_cells({region.cols.begin, whole.begin});
      if (!whole.empty()) {
        const T* x = line_start(in, run, n, row, whole.begin);
        row_kernels<T>().pooled_gradient_statistics(
            {gradient.windows(at, whole), x, in.block, &norms, by.activation}, shift, scale);
      }
      add_cells({whole.end, region.cols.end});
    };
    const Index first = at_once > 1 ? region.rows.begin + joined_row * at_once : joined_row;
    for (Index row = first; row < first + at_once; ++row) {
      add_row(row);
    }
    for (Index l = 0; l < run.size(); ++l) {
      sums[static_cast<std::size_t>(l)] = {shift[l], scale[l]};
    }
  });
  return lines.total([](NormGradient& total, const NormGradient& line) { total += line; });
}

template <class T>
NormalizedGradient<T>::NormalizedGradient(View<const T> in,
                                          const Region& region,
                                          const Normalization<T>& by,
                                          const StatisticsGradient& statistics,
                                          const GradientLines<T>& gradient)
    : in_(in),
      by_(by),
      statistics_(statistics),
      gradient_(gradient),
      runs_(gradient.runs(region.channels, in)) {
  for (const Range& run : runs_) {
    norms_.push_back(norms_of(run));
  }
}

template <class T>
typename NormalizedGradient<T>::RunNorms NormalizedGradient<T>::norms_of(const Range& run) const {
  RunNorms norms;
  norms.norms = block_norms(by_, run);
  for (Index l = 0; l < run.size(); ++l) {
    const auto c = static_cast<std::size_t>(run.begin - by_.first + l);
    norms.alone.scale[l] = by_.norms[c].backward * by_.scale[c];
  }
  norms.together = norms.alone;
  for (Index l = 0; l < run.size(); ++l) {
    const auto c = static_cast<std::size_t>(run.begin - by_.first + l);
    if (contains(statistics_.owned.channels, {run.begin + l, run.begin + l + 1})) {
      const double count = statistics_.count;
      norms.together.mean[l] = by_.norms[c].mean;
      norms.together.shift[l] = static_cast<T>(statistics_.totals[c].shift / count);
      norms.together.inverse[l] = static_cast<T>(statistics_.totals[c].scale / count *
                                                 static_cast<double>(by_.norms[c].curvature));
    }
  }
  return norms;
}

template <class T>
void NormalizedGradient<T>::make(
    const Range& run, Index n, Index row, const Range& cols, T* to) const {
  const Index channels = gradient_.channels(run, in_);
  const auto found =
      std::lower_bound(runs_.begin(), runs_.end(), run, [](const Range& a, const Range& b) {
        return a.begin < b.begin;
      });
  const RunNorms& through = norms_[static_cast<std::size_t>(found - runs_.begin())];
  const auto apply = [&](const Range& part, const BlockNorms<T>& how) {
    if (part.empty()) {
      return;
    }
    gradient_.for_each_piece(
        {run, n, row, channels}, part, [&](Index col, Index cells, const T* g, Index step) {
          const T* x = line_start(in_, run, n, row, col);
          normalize_cells({x, in_.block, g, step, cells, channels, &through.norms, by_.activation},
                          how,
                          to + (col - cols.begin) * in_.block);
        });
  };
  const Region& owned = statistics_.owned;
  const bool row_owned = statistics_.count != 0 && contains(owned.images, {n, n + 1}) &&
                         contains(owned.rows, {row, row + 1});
  const Range mine = row_owned ? intersect(cols, owned.cols) : Range{};
  if (mine.empty()) {
    apply(cols, through.alone);
    return;
  }
  apply({cols.begin, mine.begin}, through.alone);
  apply(mine, through.together);
  apply({mine.end, cols.end}, through.alone);
}

template <class T>
void normalize_backward(View<T> in,
                        const Region& region,
                        const Normalization<T>& by,
                        const StatisticsGradient& statistics,
                        const GradientLines<T>& gradient) {
  if (region.empty()) {
    return;  // its channels need not be those of the statistics
  }
  Region owned = statistics.owned;
  if (statistics.count == 0 || (owned.rows == region.rows && owned.cols == region.cols)) {
    if (const Index at_once = gradient.rows_at_once(region, in); at_once > 1) {
      const Region whole = joined(region, at_once);
      owned.rows = whole.rows;
      owned.cols = whole.cols;
      normalize_backward(joined(in, at_once),
                         whole,
                         by,
                         {statistics.totals, statistics.count, owned},
                         gradient.joined(at_once));
      return;
    }
  }
  const NormalizedGradient<T> gradients(in, region, by, statistics, gradient);
  for_each_line(region, gradients.runs(), [&](const Range& run, Index n, Index row) {
    gradients.make(run, n, row, region.cols, line_start(in, run, n, row, region.cols.begin));
  });
}

template ChannelNorm<float> batch_norm<float>(const NormRule&, const Moments&);
template ChannelNorm<float> running_norm<float>(const NormRule&, float, float);
template class LineMoments<float>;
template std::vector<Moments> channel_moments<float>(View<const float>, const Region&);
template BlockNorms<float> block_norms(const Normalization<float>&, const Range&);
template void normalize_forward<float>(View<const float>,
                                       const Region&,
                                       const Normalization<float>&,
                                       View<float>);
template std::vector<NormGradient> normalize_backward_statistics<float>(View<const float>,
                                                                        const Region&,
                                                                        const Normalization<float>&,
                                                                        const GradientLines<float>&,
                                                                        const View<float>&);
template class NormalizedGradient<float>;
template void normalize_backward<float>(View<float>,
                                        const Region&,
                                        const Normalization<float>&,
                                        const StatisticsGradient&,
                                        const GradientLines<float>&);
template ChannelNorm<double> batch_norm<double>(const NormRule&, const Moments&);
template ChannelNorm<double> running_norm<double>(const NormRule&, double, double);
template class LineMoments<double>;
template std::vector<Moments> channel_moments<double>(View<const double>, const Region&);
template BlockNorms<double> block_norms(const Normalization<double>&, const Range&);
template void normalize_forward<double>(View<const double>,
                                        const Region&,
                                        const Normalization<double>&,
                                        View<double>);
template std::vector<NormGradient> normalize_backward_statistics<double>(
    View<const double>,
    const Region&,
    const Normalization<double>&,
    const GradientLines<double>&,
    const View<double>&);
template class NormalizedGradient<double>;
template void normalize_backward<double>(View<double>,
                                         const Region&,
                                         const Normalization<double>&,
                                         const StatisticsGradient&,
                                         const GradientLines<double>&);

}  // namespace tessera::engine
