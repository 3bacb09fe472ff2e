#include "engine/layers/norm_stage.h"

namespace tessera::engine {

template <class T>
void NormStage<T>::begin_statistics(const LayerViews<T>& views) const {
  const Region& owned = site_.tile().owned;
  if (!owned.empty()) {
    views.norm->lines.emplace(View<const T>(views.forward_output()), owned);
  }
}

template <class T>
void NormStage<T>::statistics(const LayerViews<T>& views) const {
  NormState<T>& state = *views.norm;
  const std::vector<Moments> owned =
      state.lines ? state.lines->total()
                  : channel_moments(View<const T>(views.forward_output()), site_.tile().owned);
  state.lines.reset();
  state.moments.clear();
  for (const Moments& moments : owned) {
    state.moments.insert(state.moments.end(), {moments.count, moments.mean, moments.squares});
  }
}

template <class T>
void NormStage<T>::assign_norms(const LayerViews<T>& views) const {
  const Range& channels = site_.tile().computed.channels;
  std::vector<Moments> all(static_cast<std::size_t>(channels.size()));
  for (const ChannelShare& share : views.shares) {
    const double* values = share.values;
    for (Index c = share.channels.begin; c < share.channels.end; ++c, values += kMomentFields) {
      Moments& total = all[static_cast<std::size_t>(c - channels.begin)];
      total = merge(total, {values[0], values[1], values[2]});
    }
  }
  std::vector<ChannelNorm<T>>& norms = views.norm->norms;
  norms.resize(all.size());
  const ParameterViews<T>& parameters = views.parameters;
  const NormRule& rule = site_.norm;
  for (std::size_t c = 0; c < norms.size(); ++c) {
    if (all[c].count == 0) {  // nothing known but what was seen before
      norms[c] = running_norm(rule, parameters.mean[c], parameters.variance[c]);
      continue;
    }
    norms[c] = batch_norm<T>(rule, all[c]);
    const auto blend = [rate = rule.rate](T& running, double batch) {
      running = static_cast<T>((1 - rate) * static_cast<double>(running) + rate * batch);
    };
    blend(parameters.mean[c], all[c].mean);
    blend(parameters.variance[c], running_variance(all[c]));
  }
}

template <class T>
void NormStage<T>::activate(const LayerViews<T>& views) const {
  if (site_.tile().computed.empty()) {
    return;
  }
  if (normalize_) {
    assign_norms(views);
  }
  restore(views);
}

template <class T>
void NormStage<T>::restore(const LayerViews<T>& views) const {
  const Region& computed = site_.tile().computed;
  if (computed.empty()) {
    return;
  }
  const View<const T> in = views.forward_output();
  const Pooled<T> pooled{views.output, views.argmax};
  if (normalize_ && has_pool()) {
    normalize_pool_forward(
        in, normalization(views), pool_site(&partitioner::Tile::computed), pooled);
  } else if (normalize_) {
    normalize_forward(in, computed, normalization(views), views.output);
  } else if (has_pool()) {
    activate_pool_forward(activation_, in, pool_site(&partitioner::Tile::computed), pooled);
  } else {
    activate_forward(activation_, in, computed, views.output);
  }
}

template <class T>
PoolSite NormStage<T>::pool_site(Region partitioner::Tile::*region) const {
  const int pool = has_pool() ? site_.fused_pool : site_.argmax_pool;  // the same where both are
  return {std::get<partitioner::MaxPool>(site_.network->layer(pool).operation),
          whole_map(*site_.network, site_.layer, site_.plan->batch),
          site_.plan->tile(pool, site_.rank).*region};
}

template <class T>
Normalization<T> NormStage<T>::normalization(const LayerViews<T>& views) const {
  return {site_.tile().computed.channels.begin,
          views.norm->norms,
          views.parameters.scale,
          views.parameters.bias,
          activation_};
}

// Cells that a channel's statistics were taken over; 0 where they were constants.
template <class T>
double NormStage<T>::statistics_cells(const Pass& pass) const {
  const Region& owned = site_.tile().owned;
  if (pass.batch_norm == BatchNormMode::Frozen || !pass.training) {
    return 0;
  }
  if (pass.batch_norm == BatchNormMode::PerTile) {
    const Index cells = owned.empty() ? 0 : owned.volume() / owned.channels.size();
    return static_cast<double>(cells);
  }
  const partitioner::MapShape& shape = site_.spec().output;
  return static_cast<double>(site_.plan->statistics_batch() * shape.rows * shape.cols);
}

template <class T>
GradientLines<T> NormStage<T>::output_gradients(const LayerViews<T>& views) const {
  const View<const T> gradient = views.output_gradient;
  return has_pool()
             ? GradientLines<T>(pool_site(&partitioner::Tile::backward), gradient, views.argmax)
             : GradientLines<T>(gradient);
}

template <class T>
void NormStage<T>::backward_without_norm(const LayerViews<T>& views) const {
  const partitioner::Tile& tile = site_.tile();
  // What a pool's argmax cells had is what the pool holds, and all else takes no gradient.
  const Region region = has_pool() ? pool_site(&partitioner::Tile::backward).region : tile.backward;
  const std::vector<double> channels = activate_backward(activation_,
                                                         View<const T>(views.forward_output()),
                                                         View<const T>(views.output),
                                                         region,
                                                         views.output_gradient);
  const Index first = region.channels.begin - tile.computed.channels.begin;
  for (std::size_t c = 0; c < channels.size(); ++c) {
    views.parameters.bias_gradient[first + static_cast<Index>(c)] += static_cast<T>(channels[c]);
  }
  if (has_pool() && views.pre_activation_gradients.data != nullptr) {
    copy_lines(output_gradients(views), tile.backward, views.pre_activation_gradients);
  }
}

template <class T>
void NormStage<T>::backward_activation(const LayerViews<T>& views) const {
  const partitioner::Tile& tile = site_.tile();
  if (!normalize_) {
    if (!tile.computed.empty()) {
      backward_without_norm(views);
    }
    return;
  }
  std::vector<double>& gradients = views.norm->gradients;
  gradients.clear();
  if (tile.computed.empty()) {
    return;
  }
  for (const NormGradient& gradient :
       normalize_backward_statistics(View<const T>(views.pre_activations),
                                     tile.backward,
                                     normalization(views),
                                     output_gradients(views),
                                     brings_through() ? views.output_gradient : View<T>{})) {
    gradients.insert(gradients.end(), {gradient.shift, gradient.scale});
  }
}

template <class T>
void NormStage<T>::backward_normalize(const Pass& pass, const LayerViews<T>& views) const {
  const Range& channels = site_.tile().computed.channels;
  if (site_.tile().computed.empty()) {
    return;
  }
  std::vector<NormGradient>& totals = views.norm->totals;
  totals.assign(static_cast<std::size_t>(channels.size()), {});
  for (const ChannelShare& share : views.shares) {
    const double* values = share.values;
    for (Index c = share.channels.begin; c < share.channels.end; ++c, values += kGradientFields) {
      totals[static_cast<std::size_t>(c - channels.begin)] += {values[0], values[1]};
    }
  }
  views.norm->cells = statistics_cells(pass);
  for (std::size_t c = 0; c < totals.size(); ++c) {
    views.parameters.bias_gradient[c] += static_cast<T>(totals[c].shift);
    views.parameters.scale_gradient[c] += static_cast<T>(totals[c].scale);
  }
}

template <class T>
void NormStage<T>::normalize_gradient(const LayerViews<T>& views) const {
  if (!site_.tile().computed.empty()) {
    normalize_backward(views.pre_activations,
                       site_.tile().backward,
                       backward_normalization(views),
                       through_statistics(views),
                       output_gradients(views));
  }
}

template class NormStage<float>;
template class NormStage<double>;

}  // namespace tessera::engine
