#include "partitioner/plan/recomputation.h"

#include <algorithm>

#include "partitioner/network/layer_traits.h"

namespace tessera::partitioner {

namespace {

class Recomputation {
 public:
  Recomputation(const Network& network, const LayerRun& group, const std::vector<int>& fused_pool)
      : network_(network),
        group_(group),
        fused_pool_(fused_pool),
        layers_(static_cast<std::size_t>(group.last - group.first) + 1) {}

  std::vector<RecomputedLayer> layers() {
    for (int layer = group_.last; layer >= group_.first; --layer) {
      if (!is_fused(layer)) {
        RecomputedLayer& recomputed = at(layer);
        recomputed.output = output_is_wanted(layer);
        const LayerSpec& spec = network_.layer(layer);
        recomputed.runs =
            recomputed.output || (spec.has_backward && keeps_pre_activations(spec.operation));
      }
    }
    return std::move(layers_);
  }

 private:
  RecomputedLayer& at(int layer) { return layers_[static_cast<std::size_t>(layer - group_.first)]; }

  [[nodiscard]] int pool_of(int layer) const {
    return fused_pool_[static_cast<std::size_t>(layer)];
  }
  [[nodiscard]] bool is_fused(int layer) const {
    return layer > group_.first && pool_of(layer - 1) == layer;
  }

  // All later layers of the group have been here already.
  bool output_is_wanted(int layer) {
    const int map = pool_of(layer) == kNoLayer ? layer : pool_of(layer);
    if (last_backward_reader(network_, map) > group_.last) {
      return false;  // kept
    }
    if (backward_reads_output(network_.layer(layer))) {
      return true;
    }
    const bool comes_from_pre_activations = takes_batch_statistics(network_.layer(map));
    const std::vector<int> readers = readers_of(network_, map);
    return std::any_of(readers.begin(), readers.end(), [&](int reader) {
      return reader <= group_.last &&
             (at(reader).runs ||
              (!comes_from_pre_activations && backward_reads_inputs(network_.layer(reader))));
    });
  }

  const Network& network_;
  LayerRun group_;
  const std::vector<int>& fused_pool_;
  std::vector<RecomputedLayer> layers_;
};

}  // namespace

std::vector<int> readers_of(const Network& network, int map) {
  std::vector<int> readers;
  for (int layer = map + 1; layer < network.size(); ++layer) {
    for (const int input : network.layer(layer).inputs) {
      if (input == map) {
        readers.push_back(layer);
      }
    }
  }
  return readers;
}

int fusable_pool(const Network& network, int layer) {
  const Operation& operation = network.layer(layer).operation;
  const int next = layer + 1;
  if (!std::holds_alternative<Convolution>(operation) || next == network.size()) {
    return kNoLayer;
  }
  const auto* pool = std::get_if<MaxPool>(&network.layer(next).operation);
  const bool gradient_needs_values = keeps_pre_activations(operation) && !normalizes(operation);
  if (pool == nullptr || !pool->divides_map() || gradient_needs_values) {
    return kNoLayer;
  }
  return readers_of(network, layer) == std::vector<int>{next} ? next : kNoLayer;
}

int last_backward_reader(const Network& network, int map) {
  if (map == network.size() - 1 ||
      layer_traits(network.layer(map).operation).loss != LossForm::None) {
    return network.size();
  }
  int last = kNoLayer;
  for (const int reader : readers_of(network, map)) {
    last = backward_reads_inputs(network.layer(reader)) ? reader : last;
  }
  return last;
}

std::vector<RecomputedLayer> recomputed_layers(const Network& network,
                                               const LayerRun& group,
                                               const std::vector<int>& fused_pool) {
  return Recomputation(network, group, fused_pool).layers();
}

std::vector<RecomputedLayer> recomputed_work(const Network& network,
                                             const LayerRun& group,
                                             const std::vector<OwnerReduction>& reductions) {
  const auto is_reduced = [&reductions](int map) {
    return std::any_of(
        reductions.begin(), reductions.end(), [map](const OwnerReduction& reduction) {
          return reduction.map == map && !reduction.messages.empty();
        });
  };
  std::vector<int> pools(network.layers.size(), kNoLayer);
  for (int layer = group.first; layer < group.last; ++layer) {
    if (!is_reduced(layer)) {
      pools[static_cast<std::size_t>(layer)] = fusable_pool(network, layer);
    }
  }
  std::vector<RecomputedLayer> layers = recomputed_layers(network, group, pools);
  for (int layer = group.first; layer < group.last; ++layer) {
    if (pools[static_cast<std::size_t>(layer)] != kNoLayer) {
      const auto at = static_cast<std::size_t>(layer - group.first);
      layers[at + 1] = {layers[at].output, layers[at].output};
    }
  }
  return layers;
}

bool runs_again(const Network& network, const LayerRun& group) {
  const auto any = [](const std::vector<RecomputedLayer>& layers) {
    return std::any_of(
        layers.begin(), layers.end(), [](const RecomputedLayer& layer) { return layer.runs; });
  };
  const std::vector<int> no_pools(network.layers.size(), kNoLayer);
  return any(recomputed_layers(network, group, no_pools)) ||
         any(recomputed_work(network, group, {}));
}

}  // namespace tessera::partitioner
