#include "engine/ops/convolution/direct_plane.h"

#include "engine/ops/convolution/channel_blocks.h"

namespace tessera::engine {

namespace {

// Where vectors of kBlockChannels pixels begin that cover a row: the last one ends with it and may
// overlap.
std::vector<Index> vector_starts(Index cols) {
  std::vector<Index> starts;
  for (Index col = 0; col < cols; col += kBlockChannels) {
    starts.push_back(std::min(col, cols - kBlockChannels));
  }
  return starts;
}

template <class T>
const T* window_of(
    const ConvolutionShape& shape, const View<const T>& in, Index n, Index row, Index col) {
  return in.cell(n, row - shape.padding.rows, col - shape.padding.cols);
}

// Weights (terms, kNarrowChannels) of `filters` filters, 0 for further ones.
template <class T>
std::vector<T> filters_by_term(const T* weight, Index filters, Index terms) {
  std::vector<T> by_term(static_cast<std::size_t>(terms * kNarrowChannels));
  for (Index k = 0; k < filters; ++k) {
    for (Index t = 0; t < terms; ++t) {
      by_term[static_cast<std::size_t>(t * kNarrowChannels + k)] = weight[k * terms + t];
    }
  }
  return by_term;
}

// The gradients of a piece of a map, a plane for each channel: (row, vector, kNarrowChannels,
// kBlockChannels).
template <class T>
void gather_planes(const View<const T>& gradient,
                   const Region& piece,
                   const std::vector<Index>& starts,
                   T* planes) {
  const Index filters = piece.channels.size();
  for (Index row = piece.rows.begin; row < piece.rows.end; ++row) {
    const T* cells = gradient.cell(piece.images.begin, row, piece.cols.begin) +
                     gradient.channel_offset(piece.channels.begin);
    for (std::size_t i = 0; i < starts.size(); ++i) {
      block_kernels<T>().transpose(
          {cells + starts[i] * gradient.block, gradient.block, planes, kBlockChannels},
          kBlockChannels,
          gradient.block);
      // Pixels that the vector before has too count once.
      const Index again = static_cast<Index>(i) * kBlockChannels - starts[i];
      for (Index k = 0; again > 0 && k < filters; ++k) {
        std::fill_n(planes + k * kBlockChannels, again, T{});
      }
      planes += kNarrowChannels * kBlockChannels;
    }
  }
}

constexpr Index kPlaneElements = Index{1} << 13U;  // of gradients that terms meet at once
constexpr Index kMostTerms = 64;                   // of a chunk

}  // namespace

template <class T>
bool is_plane(const ConvolutionShape& shape,
              const View<const T>& in,
              const Region& region,
              const View<const T>& out) {
  const Index filters = region.channels.size();
  const Index cols = region.cols.size();
  return shape.channels == 1 && in.block == 1 && shape.stride == 1 && shape.dilation == 1 &&
         filters > 1 && filters <= kNarrowChannels && out.region.channels == region.channels &&
         cols >= kBlockChannels && cols * kNarrowChannels <= kPlaneElements;
}

template <class T>
void plane_forward(const ConvolutionShape& shape, const ForwardArguments<T>& given) {
  const View<const T>& in = given.in;
  const T* weight = given.filters.weight;
  const T* bias = given.filters.bias;
  const ConvolutionOutput<T>& out = given.out;
  const Region& region = out.region;
  const Index filters = region.channels.size();
  const std::vector<Index> starts = vector_starts(region.cols.size());
  const std::vector<Index> offsets = window_offsets(shape, in, 0);
  const std::vector<T> weights = filters_by_term(weight, filters, shape.row());
  std::array<T, kNarrowChannels> biases{};
  if (bias != nullptr) {
    std::copy_n(bias, filters, biases.begin());
  }
  PlaneSum<T> all;
  all.offsets = offsets.data();
  all.terms = shape.row();
  all.weights = weights.data();
  all.start = biases.data();
  all.starts = starts.data();
  all.vectors = static_cast<Index>(starts.size());
  all.cells_step = out.cells.block;  // what is beyond the last channel is nothing
  parallel_for(region.images, region.rows, [&](Index n, Index row) {
    PlaneSum<T> job = all;
    job.in = window_of(shape, in, n, row, region.cols.begin);
    job.cells =
        out.cells.cell(n, row, region.cols.begin) + out.cells.channel_offset(region.channels.begin);
    block_kernels<T>().plane_sum(job, filters);
    if (out.done) {
      out.done(region.channels, n, {row, row + 1});
    }
  });
}

namespace {

// Adds what all pixels say of the terms of one chunk.
template <class T>
void add_plane_terms(const ConvolutionShape& shape,
                     const View<const T>& in,
                     const View<const T>& out_gradient,
                     const Region& region,
                     const Range& terms,
                     T* weight_gradient) {
  const std::vector<Index> starts = vector_starts(region.cols.size());
  const std::vector<Index> offsets = window_offsets(shape, in, 0);
  const Index vectors = static_cast<Index>(starts.size());
  alignas(kAlignment) std::array<T, static_cast<std::size_t>(kPlaneElements)> planes{};
  alignas(kAlignment)
      std::array<T, static_cast<std::size_t>(kMostTerms * kNarrowChannels * kBlockChannels)>
          sums{};
  PlaneOuterSum<T> job;
  job.gradient = planes.data();
  job.in_row = in.row_stride();
  job.starts = starts.data();
  job.vectors = vectors;
  job.offsets = offsets.data() + terms.begin;
  job.sums = sums.data();
  const Index most_rows = kPlaneElements / (vectors * kNarrowChannels * kBlockChannels);
  for (Index n = region.images.begin; n < region.images.end; ++n) {
    for_each_run(region.rows.size(), most_rows, [&](Index begin, Index rows) {
      const Index row = region.rows.begin + begin;
      gather_planes(out_gradient,
                    {{n, n + 1}, region.channels, {row, row + rows}, region.cols},
                    starts,
                    planes.data());
      job.in = window_of(shape, in, n, row, region.cols.begin);
      job.rows = rows;
      block_kernels<T>().plane_outer_sum(job, region.channels.size(), terms.size());
    });
  }
  for (Index k = 0; k < region.channels.size(); ++k) {
    for (Index t = terms.begin; t < terms.end; ++t) {
      const T* of_pixels = sums.data() + ((t - terms.begin) * kNarrowChannels + k) * kBlockChannels;
      T sum = 0;
      for (Index lane = 0; lane < kBlockChannels; ++lane) {
        sum += of_pixels[lane];
      }
      weight_gradient[k * shape.row() + t] += sum;
    }
  }
}

}  // namespace

template <class T>
void plane_backward_weights(const ConvolutionShape& shape,
                            View<const T> in,
                            View<const T> out_gradient,
                            const Region& region,
                            T* weight_gradient) {
  const Index terms = shape.row();
  const Index chunks = parts_for_threads((terms + kMostTerms - 1) / kMostTerms, terms, 1);
  parallel_for({0, chunks}, [&](Index chunk) {
    const Range of_chunk{terms * chunk / chunks, terms * (chunk + 1) / chunks};
    add_plane_terms(shape, in, out_gradient, region, of_chunk, weight_gradient);
  });
}

template bool is_plane<float>(const ConvolutionShape&,
                              const View<const float>&,
                              const Region&,
                              const View<const float>&);
template bool is_plane<double>(const ConvolutionShape&,
                               const View<const double>&,
                               const Region&,
                               const View<const double>&);
template void plane_forward(const ConvolutionShape&, const ForwardArguments<float>&);
template void plane_forward(const ConvolutionShape&, const ForwardArguments<double>&);
template void plane_backward_weights<float>(
    const ConvolutionShape&, View<const float>, View<const float>, const Region&, float*);
template void plane_backward_weights<double>(
    const ConvolutionShape&, View<const double>, View<const double>, const Region&, double*);

}  // namespace tessera::engine
