#include "engine/ops/convolution/deconvolution.h"

#include <algorithm>

#include "engine/ops/convolution/met_taps.h"
#include "engine/ops/loops/lines.h"

namespace tessera::engine {

namespace {

constexpr Index kWholeBlock = 16;  // channels, and elements that arrays in the workspace begin at

Index in_whole_blocks(Index count) {
  return (count + kWholeBlock - 1) / kWholeBlock * kWholeBlock;
}

// The convolution from so many channels of the output to those of the input.
ConvolutionMethod other_way(const ConvolutionShape& shape, Index channels) {
  return {{.filters = shape.channels,
           .channels = channels,
           .size = shape.size,
           .stride = shape.stride,
           .padding = shape.padding},
          partitioner::all_passes(ConvolutionKernel::Direct)};
}

// Forward its filters have whole blocks of channels, whichever of them the region has: kernels for
// few channels add in an order that depends on the region.
ConvolutionMethod forward_method(const ConvolutionShape& shape) {
  return other_way(shape, in_whole_blocks(shape.filters));
}

Index weight_elements(const ConvolutionShape& way) {
  return in_whole_blocks(way.filters * way.row());
}

// The cells of the output that those of the input reach, of an image; channels count from 0.
Region reached(const ConvolutionShape& way, const Region& cells, Index image) {
  return {{image, image + 1},
          {0, way.channels},
          window_cells(way.rows(), cells.rows),
          window_cells(way.cols(), cells.cols)};
}

Region of_image(Region region, Index image) {
  region.images = {image, image + 1};
  return region;
}

template <class T>
View<T> view_of(const Region& region, T* values) {
  return {values, region, channel_block(region.channels.size())};
}

// Calls visit(one, other) for each weight of `channels` of the output, where it lies in (K, C, FH,
// FW) and where the other way has it.
template <class One, class Other, class Visit>
void for_each_weight(
    const ConvolutionShape& way, const Range& channels, One* weight, Other* turned, Visit visit) {
  parallel_for({0, channels.size()}, {0, way.filters}, [&](Index k, Index c) {
    One* one = weight + (k * way.filters + c) * way.taps();
    Other* other = turned + c * way.row() + (channels.begin + k) * way.taps();
    for (Index tap = 0; tap < way.taps(); ++tap) {
      visit(one[tap], other[tap]);
    }
  });
}

// Calls visit(to, from) for the values of a region.
template <class T, class Visit>
void for_each_value(const Region& region, View<T> to, View<const T> from, Visit visit) {
  for_each_line(
      region, channel_runs(region.channels, to, from), [&](const Range& run, Index n, Index row) {
        T* a = line_start(to, run, n, row, region.cols.begin);
        const T* b = line_start(from, run, n, row, region.cols.begin);
        for (Index col = 0; col < region.cols.size(); ++col, a += to.block, b += from.block) {
          for_each_channel(run.size(), [&](Index l) { visit(a[l], b[l]); });
        }
      });
}

// The output gradient on `region` as the other way reads it: 0 around it, channels from 0 on.
template <class T>
View<const T> framed(View<const T> gradient, Region region, const Region& frame, T* values) {
  const View<T> result = view_of(frame, values);
  std::fill_n(values, blocked_volume(frame), T{});
  const Index first = region.channels.begin;
  for (Range* channels : {&region.channels, &gradient.region.channels}) {
    *channels = {channels->begin - first, channels->end - first};
  }
  for_each_value(
      intersect(region, frame), result, gradient, [](T& to, const T& from) { to = from; });
  return result;
}

template <class T>
void assign_biases(const ConvolutionOutput<T>& out, const T* bias) {
  const Region& region = out.region;
  for_each_line(
      region, channel_runs(region.channels, out.cells), [&](const Range& run, Index n, Index row) {
        T* cell = line_start(out.cells, run, n, row, region.cols.begin);
        for (Index col = 0; col < region.cols.size(); ++col, cell += out.cells.block) {
          std::copy_n(bias + (run.begin - region.channels.begin), run.size(), cell);
        }
      });
}

}  // namespace

Index deconvolution_workspace(ConvolutionPass pass,
                              const ConvolutionShape& shape,
                              const Region& region,
                              const Region& cells) {
  if (region.empty() || cells.empty()) {
    return 0;
  }
  if (pass == ConvolutionPass::Forward) {
    const ConvolutionShape way = forward_method(shape).shape;
    return weight_elements(way) +
           convolution_workspace(
               ConvolutionKernel::Direct, ConvolutionPass::BackwardData, way, cells);
  }
  const ConvolutionShape way = other_way(shape, region.channels.size()).shape;
  const Index frame = in_whole_blocks(blocked_volume(reached(way, cells, 0)));
  const Index sums = pass == ConvolutionPass::BackwardData ? blocked_volume(of_image(cells, 0)) : 0;
  return weight_elements(way) + frame + sums;
}

template <class T>
void deconvolution_forward(const ConvolutionShape& shape,
                           View<const T> in,
                           const Region& cells,
                           const ForwardFilters<T>& filters,
                           const ConvolutionOutput<T>& out,
                           T* workspace) {
  if (filters.bias != nullptr) {
    assign_biases(out, filters.bias);
  } else {
    set_zero(out.cells, out.region);
  }
  if (out.region.empty() || cells.empty()) {
    return;
  }
  const ConvolutionMethod way = forward_method(shape);
  for_each_weight(
      way.shape, out.region.channels, filters.weight, workspace, [](const T& one, T& other) {
        other = one;
      });
  convolution_backward_data<T>(way,
                               in,
                               Filters<T>{workspace, 0},
                               cells,
                               InputGradient<T>{out.cells, out.region, false},
                               workspace + weight_elements(way.shape));
}

template <class T>
void deconvolution_backward_data(const ConvolutionShape& shape,
                                 View<const T> out_gradient,
                                 const Region& region,
                                 const T* weight,
                                 View<T> in_gradient,
                                 const Region& cells,
                                 T* workspace) {
  if (region.empty() || cells.empty()) {
    return;
  }
  const ConvolutionMethod way = other_way(shape, region.channels.size());
  for_each_weight(
      way.shape, Range{0, region.channels.size()}, weight, workspace, [](const T& one, T& other) {
        other = one;
      });
  T* const frame_values = workspace + weight_elements(way.shape);
  for (Index n = region.images.begin; n < region.images.end; ++n) {
    const Region frame = reached(way.shape, cells, n);
    const View<const T> read = framed(out_gradient, of_image(region, n), frame, frame_values);
    const Region to = of_image(cells, n);
    const View<T> sums = view_of(to, frame_values + in_whole_blocks(blocked_volume(frame)));
    convolution_forward<T>(
        way, read, ForwardFilters<T>{workspace}, ConvolutionOutput<T>{sums, to}, nullptr);
    for_each_value(to, in_gradient, View<const T>(sums), [](T& a, const T& b) { a += b; });
  }
}

template <class T>
void deconvolution_backward_weights(const ConvolutionShape& shape,
                                    View<const T> in,
                                    const Region& cells,
                                    View<const T> out_gradient,
                                    const Region& region,
                                    T* weight_gradient,
                                    T* workspace) {
  if (region.empty() || cells.empty()) {
    return;
  }
  const ConvolutionMethod way = other_way(shape, region.channels.size());
  std::fill_n(workspace, weight_elements(way.shape), T{});
  T* const frame_values = workspace + weight_elements(way.shape);
  for (Index n = region.images.begin; n < region.images.end; ++n) {
    const View<const T> read =
        framed(out_gradient, of_image(region, n), reached(way.shape, cells, n), frame_values);
    convolution_backward_weights<T>(
        way, read, in, of_image(cells, n), WeightGradient<T>{workspace}, static_cast<T*>(nullptr));
  }
  for_each_weight(way.shape,
                  Range{0, region.channels.size()},
                  weight_gradient,
                  workspace,
                  [](T& one, const T& other) { one += other; });
}

template void deconvolution_forward<float>(const ConvolutionShape&,
                                           View<const float>,
                                           const Region&,
                                           const ForwardFilters<float>&,
                                           const ConvolutionOutput<float>&,
                                           float*);
template void deconvolution_forward<double>(const ConvolutionShape&,
                                            View<const double>,
                                            const Region&,
                                            const ForwardFilters<double>&,
                                            const ConvolutionOutput<double>&,
                                            double*);
template void deconvolution_backward_data<float>(const ConvolutionShape&,
                                                 View<const float>,
                                                 const Region&,
                                                 const float*,
                                                 View<float>,
                                                 const Region&,
                                                 float*);
template void deconvolution_backward_data<double>(const ConvolutionShape&,
                                                  View<const double>,
                                                  const Region&,
                                                  const double*,
                                                  View<double>,
                                                  const Region&,
                                                  double*);
template void deconvolution_backward_weights<float>(const ConvolutionShape&,
                                                    View<const float>,
                                                    const Region&,
                                                    View<const float>,
                                                    const Region&,
                                                    float*,
                                                    float*);
template void deconvolution_backward_weights<double>(const ConvolutionShape&,
                                                     View<const double>,
                                                     const Region&,
                                                     View<const double>,
                                                     const Region&,
                                                     double*,
                                                     double*);

}  // namespace tessera::engine
