#include "engine/ops/connected/connected_rows.h"

#include <algorithm>
#include <array>

#include "engine/ops/loops/threads.h"

namespace tessera::engine {

namespace {

using partitioner::MapShape;

// Features of all images that are copied side by side while outputs meet them.
constexpr Index kStripeFeatures = 1024;
template <class T>
using Stripe = std::array<T, static_cast<std::size_t>(kFewImages* kStripeFeatures)>;

std::vector<Range> stripes_of(Index features) {
  const Index lines = (features + kBlockChannels - 1) / kBlockChannels;
  const Index stripes =
      parts_for_threads((features + kStripeFeatures - 1) / kStripeFeatures, lines, 1);
  std::vector<Range> result;
  for (Index stripe = 0; stripe < stripes; ++stripe) {
    result.push_back({lines * stripe / stripes * kBlockChannels,
                      std::min(lines * (stripe + 1) / stripes * kBlockChannels, features)});
  }
  return result;
}

// Calls copy(number in the view, its copy) for features of all images of the region.
template <class T, class Copy>
void for_each_feature(const View<T>& view,
                      const Region& region,
                      const Range& features,
                      const std::vector<Index>& offsets,
                      std::remove_const_t<T>* copies,
                      Copy copy) {
  for (Index n = 0; n < region.images.size(); ++n) {
    T* image = view.cell(region.images.begin + n, 0, 0);
    for (Index f = 0; f < features.size(); ++f) {
      copy(image[offsets[static_cast<std::size_t>(features.begin + f)]],
           copies[n * kStripeFeatures + f]);
    }
  }
}

template <class T>
std::vector<Index> output_offsets(const View<T>& view, const Range& channels) {
  std::vector<Index> offsets;
  for (Index k = channels.begin; k < channels.end; ++k) {
    offsets.push_back(view.channel_offset(k));
  }
  return offsets;
}

}  // namespace

template <class T>
void rows_forward(const MapShape& map,
                  View<const T> in,
                  const T* weight,
                  const T* bias,
                  View<T> out,
                  const Region& region) {
  if (region.empty()) {
    return;
  }
  const Range& outputs = region.channels;
  const std::vector<Index> offsets = feature_offsets(map, in);
  parallel_for({0, (outputs.size() + kBlockChannels - 1) / kBlockChannels}, [&](Index block) {
    const Index first = block * kBlockChannels;
    const Index rows = std::min(kBlockChannels, outputs.size() - first);
    alignas(kAlignment) std::array<T, static_cast<std::size_t>(kFewImages * kBlockChannels)> sums{};
    for (Index n = 0; n < region.images.size() && bias != nullptr; ++n) {
      std::copy_n(bias + first, rows, sums.data() + n * kBlockChannels);
    }
    RowSums<T> job;
    job.weights = weight + first * map.volume();
    job.weights_row = map.volume();
    job.terms = map.volume();
    job.in = in.cell(region.images.begin, 0, 0);
    job.in_step = in.image_stride();
    job.offsets = offsets.data();
    job.sums = sums.data();
    block_kernels<T>().row_sums(job, rows, region.images.size());
    for (Index n = 0; n < region.images.size(); ++n) {
      T* cell = out.cell(region.images.begin + n, 0, 0);
      for (Index row = 0; row < rows; ++row) {
        cell[out.channel_offset(outputs.begin + first + row)] =
            sums[static_cast<std::size_t>(n * kBlockChannels + row)];
      }
    }
  });
}

template <class T>
void rows_backward_data(const MapShape& map,
                        View<const T> out_gradient,
                        const Filters<T>& weights,
                        const Region& region,
                        const InputGradient<T>& in_gradient) {
  if (region.empty()) {
    return;
  }
  const View<T>& gradient = in_gradient.cells;
  const std::vector<Index> features = feature_offsets(map, gradient);
  const std::vector<Index> outputs = output_offsets(out_gradient, region.channels);
  const std::vector<Range> stripes = stripes_of(map.volume());
  const Index stripe_count = static_cast<Index>(stripes.size());
  parallel_for({0, stripe_count}, [&](Index i) {
    const Range& stripe = stripes[static_cast<std::size_t>(i)];
    alignas(kAlignment) Stripe<T> sums;
    for_each_feature(gradient, region, stripe, features, sums.data(), [&](T& cell, T& sum) {
      sum = in_gradient.assign ? T{} : cell;
    });
    ColumnSums<T> job;
    job.weights =
        weights.weight + (region.channels.begin - weights.first) * map.volume() + stripe.begin;
    job.weights_row = map.volume();
    job.terms = stripe.size();
    job.in = out_gradient.cell(region.images.begin, 0, 0);
    job.in_step = out_gradient.image_stride();
    job.offsets = outputs.data();
    job.sums = sums.data();
    job.sums_step = kStripeFeatures;
    block_kernels<T>().column_sums(job, region.channels.size(), region.images.size());
    for_each_feature(
        gradient, region, stripe, features, sums.data(), [](T& cell, T& sum) { cell = sum; });
  });
}

template <class T>
void rows_backward_weights(const MapShape& map,
                           View<const T> in,
                           View<const T> out_gradient,
                           const Region& region,
                           T* weight_gradient) {
  if (region.empty()) {
    return;
  }
  const std::vector<Index> features = feature_offsets(map, in);
  const std::vector<Index> outputs = output_offsets(out_gradient, region.channels);
  const std::vector<Range> stripes = stripes_of(map.volume());
  const Index stripe_count = static_cast<Index>(stripes.size());
  parallel_for({0, stripe_count}, [&](Index i) {
    const Range& stripe = stripes[static_cast<std::size_t>(i)];
    alignas(kAlignment) Stripe<T> copy;
    for_each_feature(
        in, region, stripe, features, copy.data(), [](const T& cell, T& copied) { copied = cell; });
    OuterRows<T> job;
    job.weights = weight_gradient + stripe.begin;
    job.weights_row = map.volume();
    job.terms = stripe.size();
    job.in = copy.data();
    job.in_step = kStripeFeatures;
    job.gradient = out_gradient.cell(region.images.begin, 0, 0);
    job.gradient_step = out_gradient.image_stride();
    job.offsets = outputs.data();
    block_kernels<T>().outer_rows(job, region.channels.size(), region.images.size());
  });
}

template void rows_forward<float>(
    const MapShape&, View<const float>, const float*, const float*, View<float>, const Region&);
template void rows_forward<double>(
    const MapShape&, View<const double>, const double*, const double*, View<double>, const Region&);
template void rows_backward_data<float>(const MapShape&,
                                        View<const float>,
                                        const Filters<float>&,
                                        const Region&,
                                        const InputGradient<float>&);
template void rows_backward_data<double>(const MapShape&,
                                         View<const double>,
                                         const Filters<double>&,
                                         const Region&,
                                         const InputGradient<double>&);
template void rows_backward_weights<float>(
    const MapShape&, View<const float>, View<const float>, const Region&, float*);
template void rows_backward_weights<double>(
    const MapShape&, View<const double>, View<const double>, const Region&, double*);

}  // namespace tessera::engine
