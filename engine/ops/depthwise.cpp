#include "engine/ops/depthwise.h"

#include <algorithm>

#include "engine/ops/lines.h"
#include "engine/ops/row_kernels.h"

namespace engine {

namespace {

// The weights of a run of channels, tap by tap: (taps, kMostLanes). `weight` is that of channel
// `first`.
template <class T>
Array<T> lane_weights(const ConvolutionShape& shape,
                      const T* weight,
                      Index first,
                      const Range& run) {
  Array<T> lanes(shape.taps() * kMostLanes);
  for (Index l = 0; l < run.size(); ++l) {
    const T* taps = weight + (run.begin + l - first) * shape.taps();
    for (Index tap = 0; tap < shape.taps(); ++tap) {
      lanes[tap * kMostLanes + l] = taps[tap];
    }
  }
  return lanes;
}

// The outputs in `outs` whose tap number `tap` meets a cell inside `map`, in one dimension.
Range meeting(const ConvolutionShape& shape, const Range& outs, Index tap, const Range& map) {
  const Index offset = tap - shape.padding;
  const auto first_from = [&](Index cell) {  // the least output that meets `cell` or one after it
    const Index distance = cell - offset;
    return distance <= 0 ? -(-distance / shape.stride)
                         : (distance + shape.stride - 1) / shape.stride;
  };
  return {std::max(outs.begin, first_from(map.begin)), std::min(outs.end, first_from(map.end))};
}

}  // namespace

template <class T>
void depthwise_forward(const ConvolutionShape& shape,
                       View<const T> in,
                       const T* weight,
                       const T* bias,
                       const Region& region,
                       View<T> out) {
  const auto runs = channel_runs(region.channels, in, out);
  const Index run_count = static_cast<Index>(runs.size());
  std::vector<Index> offsets;
  for (Index fh = 0; fh < shape.size; ++fh) {
    for (Index fw = 0; fw < shape.size; ++fw) {
      offsets.push_back(fh * in.row_stride() + fw * in.block);
    }
  }
#pragma omp parallel for collapse(2) schedule(static)
  for (Index n = region.images.begin; n < region.images.end; ++n) {
    for (Index i = 0; i < run_count; ++i) {
      const Range& run = runs[static_cast<std::size_t>(i)];
      const Array<T> weights = lane_weights(shape, weight, region.channels.begin, run);
      alignas(kAlignment) T biases[kMostLanes] = {};
      if (bias != nullptr) {
        std::copy_n(bias + run.begin - region.channels.begin, run.size(), biases);
      }
      for (Index row = region.rows.begin; row < region.rows.end; ++row) {
        const T* window = line_start(in,
                                     run,
                                     n,
                                     row * shape.stride - shape.padding,
                                     region.cols.begin * shape.stride - shape.padding);
        row_kernels<T>().depthwise({window,
                                    in.block * shape.stride,
                                    offsets.data(),
                                    shape.taps(),
                                    weights.data(),
                                    biases,
                                    line_start(out, run, n, row, region.cols.begin),
                                    out.block,
                                    region.cols.size(),
                                    whole_lanes(run, in, out)});
      }
    }
  }
}

template <class T>
void depthwise_backward_data(const ConvolutionShape& shape,
                             View<const T> out_gradient,
                             const Filters<T>& filters,
                             const Region& region,
                             const Region& map,
                             View<T> in_gradient) {
  const auto runs = channel_runs(region.channels, out_gradient, in_gradient);
  const Index run_count = static_cast<Index>(runs.size());
  // Windows of neighbouring rows share cells, so a thread takes whole maps.
#pragma omp parallel for collapse(2) schedule(static)
  for (Index n = region.images.begin; n < region.images.end; ++n) {
    for (Index i = 0; i < run_count; ++i) {
      const Range& run = runs[static_cast<std::size_t>(i)];
      const Array<T> weights = lane_weights(shape, filters.weight, filters.first, run);
      const Index lanes = whole_lanes(run, out_gradient, in_gradient);
      for (Index tap = 0; tap < shape.taps(); ++tap) {
        const Index fh = tap / shape.size;
        const Index fw = tap % shape.size;
        const Range rows = meeting(shape, region.rows, fh, map.rows);
        const Range cols = meeting(shape, region.cols, fw, map.cols);
        for (Index row = rows.begin; row < rows.end && !cols.empty(); ++row) {
          row_kernels<T>().add_scaled({line_start(out_gradient, run, n, row, cols.begin),
                                       out_gradient.block,
                                       in_gradient.block * shape.stride,
                                       cols.size(),
                                       lanes},
                                      weights.data() + tap * kMostLanes,
                                      line_start(in_gradient,
                                                 run,
                                                 n,
                                                 row * shape.stride + fh - shape.padding,
                                                 cols.begin * shape.stride + fw - shape.padding));
        }
      }
    }
  }
}

template <class T>
void depthwise_backward_weights(const ConvolutionShape& shape,
                                View<const T> in,
                                View<const T> out_gradient,
                                const Region& region,
                                Index first_filter,
                                T* weight_gradient) {
  const auto runs = channel_runs(region.channels, in, out_gradient);
  const Index run_count = static_cast<Index>(runs.size());
#pragma omp parallel for collapse(2) schedule(static)
  for (Index i = 0; i < run_count; ++i) {
    for (Index tap = 0; tap < shape.taps(); ++tap) {
      const Range& run = runs[static_cast<std::size_t>(i)];
      const Index lanes = whole_lanes(run, in, out_gradient);
      alignas(kAlignment) T sums[kMostLanes] = {};
      for (Index n = region.images.begin; n < region.images.end; ++n) {
        for (Index row = region.rows.begin; row < region.rows.end; ++row) {
          row_kernels<T>().add_products(
              {line_start(in,
                          run,
                          n,
                          row * shape.stride + tap / shape.size - shape.padding,
                          region.cols.begin * shape.stride + tap % shape.size - shape.padding),
               in.block * shape.stride,
               out_gradient.block,
               region.cols.size(),
               lanes},
              line_start(out_gradient, run, n, row, region.cols.begin),
              sums);
        }
      }
      for (Index l = 0; l < run.size(); ++l) {
        weight_gradient[(run.begin + l - first_filter) * shape.taps() + tap] += sums[l];
      }
    }
  }
}

template void depthwise_forward<float>(const ConvolutionShape&,
                                       View<const float>,
                                       const float*,
                                       const float*,
                                       const Region&,
                                       View<float>);
template void depthwise_backward_data<float>(const ConvolutionShape&,
                                             View<const float>,
                                             const Filters<float>&,
                                             const Region&,
                                             const Region&,
                                             View<float>);
template void depthwise_backward_weights<float>(
    const ConvolutionShape&, View<const float>, View<const float>, const Region&, Index, float*);
template void depthwise_forward<double>(const ConvolutionShape&,
                                        View<const double>,
                                        const double*,
                                        const double*,
                                        const Region&,
                                        View<double>);
template void depthwise_backward_data<double>(const ConvolutionShape&,
                                              View<const double>,
                                              const Filters<double>&,
                                              const Region&,
                                              const Region&,
                                              View<double>);
template void depthwise_backward_weights<double>(
    const ConvolutionShape&, View<const double>, View<const double>, const Region&, Index, double*);

}  // namespace engine
