#include "engine/layers/norm_stage.h"

#include <cmath>

namespace tessera::engine {

namespace {

ChannelRoles roles(const Site& site, Region partitioner::Tile::*contributes) {
  ChannelRoles result;
  const auto channels = [](const Region& region) {
    return region.empty() ? Range{} : region.channels;
  };
  for (int rank = 0; rank < site.plan->ranks; ++rank) {
    const partitioner::Tile& tile = site.plan->tile(site.layer, rank);
    result.contributes.push_back(channels(tile.*contributes));
    result.needs.push_back(channels(tile.computed));
  }
  return result;
}

}  // namespace

template <class T>
NormStage<T>::NormStage(const Site& site, bool normalize, Activation activation)
    : site_(site), normalize_(normalize), activation_(activation) {
  if (normalize) {
    moment_sums_.emplace(*site.communicator, roles(site, &partitioner::Tile::owned), 3, site.tag);
    gradient_sums_.emplace(
        *site.communicator, roles(site, &partitioner::Tile::backward), 2, site.tag + 1);
    norms_.resize(static_cast<std::size_t>(site.tile().computed.channels.size()));
  }
}

template <class T>
std::vector<Moments> NormStage<T>::over_ranks(const Pass& pass, const std::vector<Moments>& owned) {
  const partitioner::Tile& tile = site_.tile();
  std::vector<Moments> all(norms_.size());
  if (pass.batch_norm == BatchNormMode::PerTile) {
    const Index first = tile.owned.channels.begin - tile.computed.channels.begin;
    std::copy(owned.begin(), owned.end(), all.begin() + (owned.empty() ? 0 : first));
    return all;
  }
  std::vector<double> mine;
  for (const Moments& of : owned) {
    mine.insert(mine.end(), {of.count, of.mean, of.squares});
  }
  moment_sums_->gather(mine, [&](int, const Range& channels, const double* values) {
    for (Index c = channels.begin; c < channels.end; ++c, values += 3) {
      Moments& total = all[static_cast<std::size_t>(c - tile.computed.channels.begin)];
      total = merge(total, {values[0], values[1], values[2]});
    }
  });
  return all;
}

template <class T>
bool NormStage<T>::takes_statistics(const Pass& pass) const {
  return normalize_ && pass.training && pass.batch_norm != BatchNormMode::Frozen;
}

template <class T>
std::optional<LineMoments<T>> NormStage<T>::line_moments(const Pass& pass,
                                                         const LayerMaps<T>& maps) const {
  const Region& owned = site_.tile().owned;
  if (!takes_statistics(pass) || owned.empty()) {
    return {};
  }
  return LineMoments<T>(View<const T>(sums(maps)), owned);
}

template <class T>
void NormStage<T>::update_statistics(const Pass& pass,
                                     const LayerMaps<T>& maps,
                                     const std::optional<LineMoments<T>>& moments) {
  const ParameterViews<T>& parameters = maps.parameters;
  std::vector<Moments> all(norms_.size());
  if (takes_statistics(pass)) {
    all = over_ranks(pass,
                     moments ? moments->total()
                             : channel_moments(View<const T>(sums(maps)), site_.tile().owned));
  }
  const double rate = site_.batch_norm_rate;
  for (std::size_t c = 0; c < norms_.size(); ++c) {
    if (all[c].count == 0) {  // nothing to go by but what was seen before
      const double running = static_cast<double>(parameters.variance[c]);
      norms_[c] = {parameters.mean[c],
                   static_cast<T>(1 / std::sqrt(running + site_.batch_norm_epsilon))};
      continue;
    }
    const double variance = all[c].squares / all[c].count;
    const double unbiased = all[c].count > 1 ? all[c].squares / (all[c].count - 1) : variance;
    norms_[c] = {static_cast<T>(all[c].mean),
                 static_cast<T>(1 / std::sqrt(variance + site_.batch_norm_epsilon))};
    const auto blend = [rate](T& running, double batch) {
      running = static_cast<T>((1 - rate) * static_cast<double>(running) + rate * batch);
    };
    blend(parameters.mean[c], all[c].mean);
    blend(parameters.variance[c], unbiased);
  }
}

template <class T>
void NormStage<T>::forward(const Pass& pass,
                           const LayerMaps<T>& maps,
                           const std::optional<LineMoments<T>>& moments) {
  if (site_.tile().computed.empty()) {
    return;
  }
  if (normalize_) {
    update_statistics(pass, maps, moments);
  }
  restore(maps);
}

template <class T>
void NormStage<T>::restore(const LayerMaps<T>& maps) {
  const Region& computed = site_.tile().computed;
  const View<const T> in = sums(maps);
  const Pooled<T> pooled{maps.output, maps.winners};
  if (normalize_ && has_pool()) {
    normalize_pool_forward(
        in, normalization(maps), pool_site(&partitioner::Tile::computed), pooled);
  } else if (normalize_) {
    normalize_forward(in, computed, normalization(maps), maps.output);
  } else if (has_pool()) {
    activate_pool_forward(activation_, in, pool_site(&partitioner::Tile::computed), pooled);
  } else {
    activate_forward(activation_, in, computed, maps.output);
  }
}

template <class T>
PoolSite NormStage<T>::pool_site(Region partitioner::Tile::*region) const {
  const int pool = has_pool() ? site_.joined_pool : site_.winning_pool;  // the same where both are
  return {std::get<partitioner::MaxPool>(site_.network->layer(pool).operation),
          whole_map(*site_.network, site_.layer, site_.plan->batch),
          site_.plan->tile(pool, site_.communicator->rank()).*region};
}

template <class T>
Normalization<T> NormStage<T>::normalization(const LayerMaps<T>& maps) const {
  return {site_.tile().computed.channels.begin,
          norms_,
          maps.parameters.scale,
          maps.parameters.bias,
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
  return static_cast<double>(site_.plan->batch * shape.rows * shape.cols);
}

template <class T>
void NormStage<T>::backward(const Pass& pass, const LayerMaps<T>& maps) {
  if (site_.tile().computed.empty()) {
    return;
  }
  if (!normalize_) {
    backward_activation(maps);
    return;
  }
  backward_statistics(pass, maps);
  normalize_backward(maps.sums,
                     site_.tile().backward,
                     normalization(maps),
                     through_statistics(),
                     output_gradients(maps));
}

template <class T>
GradientLines<T> NormStage<T>::output_gradients(const LayerMaps<T>& maps) const {
  const View<const T> gradient = maps.output_gradient;
  return has_pool()
             ? GradientLines<T>(pool_site(&partitioner::Tile::backward), gradient, maps.winners)
             : GradientLines<T>(gradient);
}

template <class T>
void NormStage<T>::backward_activation(const LayerMaps<T>& maps) {
  const partitioner::Tile& tile = site_.tile();
  // What a pool's winners had is what the pool holds, and all else takes no gradient.
  const Region region = has_pool() ? pool_site(&partitioner::Tile::backward).region : tile.backward;
  const std::vector<double> channels = activate_backward(activation_,
                                                         View<const T>(sums(maps)),
                                                         View<const T>(maps.output),
                                                         region,
                                                         maps.output_gradient);
  const Index first = region.channels.begin - tile.computed.channels.begin;
  for (std::size_t c = 0; c < channels.size(); ++c) {
    maps.parameters.bias_gradient[first + static_cast<Index>(c)] += static_cast<T>(channels[c]);
  }
  if (has_pool() && maps.sum_gradients.data != nullptr) {
    copy_lines(output_gradients(maps), tile.backward, maps.sum_gradients);
  }
}

// The gradients of shift and scale of all channels of tile().computed, over all ranks that the
// statistics were taken over.
template <class T>
std::vector<NormGradient> NormStage<T>::sum_over_ranks(const Pass& pass,
                                                       const std::vector<NormGradient>& mine,
                                                       const std::function<void()>& meanwhile) {
  const partitioner::Tile& tile = site_.tile();
  const Index first = tile.computed.channels.begin;
  std::vector<NormGradient> totals(norms_.size());
  if (pass.batch_norm != BatchNormMode::Sync) {
    for (std::size_t c = 0; c < mine.size(); ++c) {
      totals[static_cast<std::size_t>(tile.backward.channels.begin - first) + c] = mine[c];
    }
    return totals;
  }
  std::vector<double> share;
  for (const NormGradient& of : mine) {
    share.insert(share.end(), {of.shift, of.scale});
  }
  const auto add = [&](int, const Range& channels, const double* values) {
    for (Index c = channels.begin; c < channels.end; ++c, values += 2) {
      totals[static_cast<std::size_t>(c - first)] += {values[0], values[1]};
    }
  };
  gradient_sums_->gather(share, add, meanwhile);
  return totals;
}

template <class T>
void NormStage<T>::backward_statistics(const Pass& pass, const LayerMaps<T>& maps) {
  const partitioner::Tile& tile = site_.tile();
  if (tile.computed.empty()) {
    return;
  }
  const ParameterViews<T>& parameters = maps.parameters;
  totals_ = sum_over_ranks(
      pass,
      normalize_backward_sums(
          View<const T>(maps.sums), tile.backward, normalization(maps), output_gradients(maps)),
      maps.meanwhile);
  backward_cells_ = statistics_cells(pass);
  for (std::size_t c = 0; c < totals_.size(); ++c) {
    parameters.bias_gradient[c] += static_cast<T>(totals_[c].shift);
    parameters.scale_gradient[c] += static_cast<T>(totals_[c].scale);
  }
}

template <class T>
Index NormStage<T>::message_bytes() const {
  return normalize_ ? moment_sums_->bytes() + gradient_sums_->bytes() : 0;
}

template class NormStage<float>;
template class NormStage<double>;

}  // namespace tessera::engine
