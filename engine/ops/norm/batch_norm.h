// Batch normalisation (Ioffe, Szegedy 2015), in the steps between which ranks talk to each other.
//
// out = activation((in - mean) * inverse_deviation * scale + shift), statistics per channel over
// all cells of the map. Statistics are sums over owned cells, in double, added up in an order that
// the number of threads does not change. All arrays are per channel and begin with the first
// channel of the region (or of the rank's channels where said).

#pragma once

#include <vector>

#include "engine/ops/activation/activation.h"
#include "engine/ops/loops/line_values.h"
#include "engine/ops/norm/gradient_lines.h"
#include "partitioner/network/norm_rule.h"

namespace tessera::engine {

using partitioner::NormRule;

// Mean and sum of squared deviations of `count` cells.
struct Moments {
  double count = 0;
  double mean = 0;
  double squares = 0;
};

// Both together (Chan, Golub, LeVeque 1979).
[[nodiscard]] Moments merge(const Moments& a, const Moments& b);

// Moments of the channels of a region, taken line by line as lines come to be, by any thread.
template <class T>
class LineMoments {
 public:
  LineMoments(View<const T> in, const Region& region);

  // Takes in rows of some channels, what lies in the region of them. Once for each row.
  void add(const Range& channels, Index n, const Range& rows);

  // The moments of each channel, when all lines are in.
  [[nodiscard]] std::vector<Moments> total() const;

 private:
  View<const T> in_;
  Region region_;
  LineValues<Moments> lines_;
};

// The moments of each channel of the region.
template <class T>
[[nodiscard]] std::vector<Moments> channel_moments(View<const T> in, const Region& region);

// What a channel's cells are normalised with, and their gradients:
//   gradient of in = backward * scale * (g - sum(g) / count
//                                         - (in - mean) * curvature * sum(g * normalised) / count)
// where g is the gradient of what activation starts from and cells of statistics count. It is the
// derivative where backward and curvature are the inverse deviation.
template <class T>
struct ChannelNorm {
  T mean = 0;
  T inverse_deviation = 1;
  T backward = 1;
  T curvature = 1;
};

// From the statistics of a batch, of at least one cell. By PyTorch's form, with v the biased
// variance, all three factors are 1 / sqrt(v + epsilon). By Darknet's, with v the unbiased one
// (0 for a single cell, of which Darknet makes no number):
//   inverse deviation f = 1 / (sqrt(v) + 1e-6), backward b = 1 / sqrt(v + 1e-5), curvature b^2 / f.
// So sums over cells, and with them the gradients of shift and scale, are true derivatives; what is
// passed on is not: b is not f, and (in - mean) / count belongs to the biased variance.
template <class T>
[[nodiscard]] ChannelNorm<T> batch_norm(const NormRule& rule, const Moments& moments);

// From running statistics, which are constants: the factors are all the inverse deviation, in
// Darknet's form, too, which never goes back through such.
template <class T>
[[nodiscard]] ChannelNorm<T> running_norm(const NormRule& rule, T mean, T variance);

// The variance that running statistics take in: the unbiased one, but for a single cell.
[[nodiscard]] double running_variance(const Moments& moments);

// What turns pre-activations into outputs; arrays begin with channel `first`.
template <class T>
struct Normalization {
  Index first = 0;
  const std::vector<ChannelNorm<T>>& norms;
  const T* scale = nullptr;
  const T* shift = nullptr;
  Activation activation = Activation::Linear;
};

// The norms of a run, from arrays by channel.
template <class T>
[[nodiscard]] BlockNorms<T> block_norms(const Normalization<T>& by, const Range& run);

// Assigns out on the region.
template <class T>
void normalize_forward(View<const T> in,
                       const Region& region,
                       const Normalization<T>& by,
                       View<T> out);

// The gradients of shift and scale: sums over cells of g and of g * normalised input.
struct NormGradient {
  double shift = 0;
  double scale = 0;

  NormGradient& operator+=(const NormGradient& other) {
    shift += other.shift;
    scale += other.scale;
    return *this;
  }
};

// Sums for each channel of the region, from the gradients of the output. Where there is a place
// for it, `through` becomes the gradient of what the activation starts from, so that nobody takes
// an exponential for it again; it may be the gradient's. Only of gradients that lie in memory, and
// an activation that takes_exponential().
template <class T>
[[nodiscard]] std::vector<NormGradient> normalize_backward_statistics(
    View<const T> in,
    const Region& region,
    const Normalization<T>& by,
    const GradientLines<T>& gradient,
    const View<T>& through = {});

// What flows through mean and variance: gradients of shift and scale over all ranks, from channel
// `first` on, and the cells of each channel that the statistics were taken over; 0 where they were
// constants. Cells of `owned` take it.
struct StatisticsGradient {
  const std::vector<NormGradient>& totals;
  double count = 0;
  Region owned;
};

// The gradients of a map that is normalised, made a piece of a line at a time out of its cells and
// the gradients of the output. Refers to all that it is made of.
template <class T>
class NormalizedGradient {
 public:
  NormalizedGradient(View<const T> in,
                     const Region& region,
                     const Normalization<T>& by,
                     const StatisticsGradient& statistics,
                     const GradientLines<T>& gradient);

  // Channels of the region that lie side by side wherever it is made from.
  [[nodiscard]] const std::vector<Range>& runs() const { return runs_; }

  // Assigns `to` the gradients of some cells of a line, in.block apart; `run` is one of runs(),
  // equal to it if not the very same. `to` may be where the cells are.
  void make(const Range& run, Index n, Index row, const Range& cols, T* to) const;

 private:
  // What is subtracted from and multiplied with the gradients of a run: `alone` for cells that take
  // nothing of what flows through the statistics, `together` for those that do.
  struct RunNorms {
    BlockNorms<T> norms;
    BlockNorms<T> alone;
    BlockNorms<T> together;
  };

  [[nodiscard]] RunNorms norms_of(const Range& run) const;

  View<const T> in_;
  Normalization<T> by_;
  const StatisticsGradient& statistics_;
  const GradientLines<T>& gradient_;
  std::vector<Range> runs_;
  std::vector<RunNorms> norms_;  // of each run
};

// Assigns each cell of `in` on the region its gradient: nobody needs the cell itself any more.
template <class T>
void normalize_backward(View<T> in,
                        const Region& region,
                        const Normalization<T>& by,
                        const StatisticsGradient& statistics,
                        const GradientLines<T>& gradient);

}  // namespace tessera::engine
