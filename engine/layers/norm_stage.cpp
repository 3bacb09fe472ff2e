#include "engine/layers/norm_stage.h"

#include <cmath>
#include <utility>

namespace engine {

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

// Adds to sums[c - first] the sum of each channel of the region.
template <class T>
void add_channel_sums(View<const T> values, const Region& region, Index first, T* sums) {
  for (Index c = region.channels.begin; c < region.channels.end; ++c) {
    const Index channel = values.channel_offset(c);
    double sum = 0;
    for (Index n = region.images.begin; n < region.images.end; ++n) {
      for (Index row = region.rows.begin; row < region.rows.end; ++row) {
        const T* cells = values.cell(n, row, region.cols.begin) + channel;
        for (Index col = 0; col < region.cols.size(); ++col) {
          sum += static_cast<double>(cells[col * values.block]);
        }
      }
    }
    sums[c - first] += static_cast<T>(sum);
  }
}

}  // namespace

template <class T>
NormStage<T>::NormStage(const Site& site, bool normalize, Activation activation)
    : site_(site), normalize_(normalize), activation_(activation) {
  if (keeps_sums()) {
    sums_ = Tensor<T>(site.tile().computed);
  }
  if (normalize) {
    moment_sums_.emplace(*site.communicator, roles(site, &partitioner::Tile::owned), 3, site.tag);
    gradient_sums_.emplace(
        *site.communicator, roles(site, &partitioner::Tile::backward), 2, site.tag + 1);
    norms_.resize(static_cast<std::size_t>(site.tile().computed.channels.size()));
  }
}

template <class T>
std::vector<Moments> NormStage<T>::moments(const Pass& pass) {
  const partitioner::Tile& tile = site_.tile();
  const std::vector<Moments> owned = channel_moments(std::as_const(sums_).view(), tile.owned);
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
void NormStage<T>::update_statistics(const Pass& pass, const LayerMaps<T>& maps) {
  const ParameterViews<T>& parameters = maps.parameters;
  const bool constant = !pass.training || pass.batch_norm == BatchNormMode::Frozen;
  const std::vector<Moments> all = constant ? std::vector<Moments>(norms_.size()) : moments(pass);
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
void NormStage<T>::forward(const Pass& pass, const LayerMaps<T>& maps) {
  const Region& computed = site_.tile().computed;
  if (computed.empty()) {
    return;
  }
  const View<const T> in = sums(maps.output);
  if (!normalize_) {
    activate_forward(activation_, in, computed, maps.output);
    return;
  }
  update_statistics(pass, maps);
  normalize_forward(in, computed, normalization(maps), maps.output);
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
  const partitioner::Tile& tile = site_.tile();
  if (tile.computed.empty()) {
    return;
  }
  const View<const T> in = sums(maps.output);
  const View<const T> out = maps.output;
  const ParameterViews<T>& parameters = maps.parameters;
  if (!normalize_) {
    activate_backward(activation_, in, out, tile.backward, maps.output_gradient);
    add_channel_sums(View<const T>(maps.output_gradient),
                     tile.backward,
                     tile.computed.channels.begin,
                     parameters.bias_gradient);
    return;
  }
  const Index first = tile.computed.channels.begin;
  const std::vector<NormGradient> mine =
      normalize_backward_sums(in, tile.backward, normalization(maps), maps.output_gradient);
  std::vector<NormGradient> totals(norms_.size());
  if (pass.batch_norm == BatchNormMode::Sync) {
    std::vector<double> share;
    for (const NormGradient& of : mine) {
      share.insert(share.end(), {of.shift, of.scale});
    }
    gradient_sums_->gather(share, [&](int, const Range& channels, const double* values) {
      for (Index c = channels.begin; c < channels.end; ++c, values += 2) {
        totals[static_cast<std::size_t>(c - first)] += {values[0], values[1]};
      }
    });
  } else {
    for (std::size_t c = 0; c < mine.size(); ++c) {
      totals[static_cast<std::size_t>(tile.backward.channels.begin - first) + c] = mine[c];
    }
  }
  for (std::size_t c = 0; c < totals.size(); ++c) {
    parameters.bias_gradient[c] += static_cast<T>(totals[c].shift);
    parameters.scale_gradient[c] += static_cast<T>(totals[c].scale);
  }
  normalize_backward(in,
                     tile.backward,
                     normalization(maps),
                     {totals, statistics_cells(pass), tile.owned},
                     maps.output_gradient);
}

template <class T>
Index NormStage<T>::message_bytes() const {
  return normalize_ ? moment_sums_->bytes() + gradient_sums_->bytes() : 0;
}

template class NormStage<float>;
template class NormStage<double>;

}  // namespace engine
