#include "partitioner/plan/layer_plan.h"

#include <algorithm>
#include <map>

#include "partitioner/base/slot.h"
#include "partitioner/network/layer_traits.h"
#include "partitioner/plan/plan.h"
#include "partitioner/plan/recomputation.h"

namespace tessera::partitioner {

namespace {

class LayerPlans {
 public:
  LayerPlans(const Network& network, Plan& plan)
      : network_(network), plan_(plan), groups_(groups_of(plan)), exchanged_(exchanged_maps(plan)) {
    for (int layer = 0; layer < network.size(); ++layer) {
      fusable_.push_back(fusable_pool(network, layer));
      by_argmax_.push_back(
          network.layer(layer).has_backward &&
          weights_from_argmax(plan.kernels_of(layer).backward_weights, network, layer));
      last_reader_.push_back(last_backward_reader(network, layer));
    }
  }

  void fill() {
    plan_.layers.assign(at(plan_.ranks), std::vector<LayerPlan>(network_.layers.size()));
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      for (int layer = 0; layer < network_.size(); ++layer) {
        pools(rank, layer);
      }
      for (int layer = 0; layer < network_.size(); ++layer) {
        planned(rank, layer).restores_output = restores(rank, layer);
      }
      for (const LayerRun& group : groups_) {
        if (plan_.recomputes(plan_.group(group.first))) {
          recompute(rank, group);
        }
      }
    }
  }

 private:
  LayerPlan& planned(int rank, int layer) { return plan_.layers[at(rank)][at(layer)]; }

  void pools(int rank, int layer) {
    const int pool = pool_of_own(rank, layer);
    if (by_argmax_[at(layer)]) {
      planned(rank, layer).argmax_pool = pool;
    }
    if (stays_with(layer, pool)) {
      planned(rank, layer).fused_pool = pool;
    }
  }

  // The fusable_pool() that reads what the rank has computed of the layer, and nothing else.
  [[nodiscard]] int pool_of_own(int rank, int layer) const {
    const int pool = fusable_[at(layer)];
    if (pool == kNoLayer || exchanged_[at(rank)][map_slot(layer)]) {
      return kNoLayer;
    }
    const BufferIndex buffer = plan_.producer(rank, layer);
    return buffer != kNoBuffer && buffer == plan_.read_from[at(rank)][at(pool)][0] ? pool
                                                                                   : kNoLayer;
  }

  // Whether the pool runs whenever the layer does.
  [[nodiscard]] bool stays_with(int layer, int pool) const {
    if (pool == kNoLayer) {
      return false;
    }
    const int group = plan_.group(layer);
    const int next = plan_.group(pool);
    return group == next || !(plan_.recomputes(group) || plan_.recomputes(next));
  }

  [[nodiscard]] bool restores(int rank, int map) {
    if (!takes_batch_statistics(network_.layer(map))) {
      return false;
    }
    const int group = plan_.group(map);
    if (plan_.recomputes(group)) {
      return last_reader_[at(map)] <= groups_[at(group)].last;
    }
    return map + 1 < network_.size() && plan_.producer(rank, map) != kNoBuffer &&
           !exchanged_[at(rank)][map_slot(map)] && planned(rank, map).fused_pool == kNoLayer;
  }

  // Ranks with the same fused pools do the same.
  void recompute(int rank, const LayerRun& group) {
    std::vector<int> pools(network_.layers.size(), kNoLayer);
    for (int layer = group.first; layer <= group.last; ++layer) {
      pools[at(layer)] = planned(rank, layer).fused_pool;
    }
    const auto [known, is_new] = recomputed_.try_emplace({group.first, pools});
    if (is_new) {
      known->second = recomputed_layers(network_, group, pools);
    }
    for (int layer = group.first; layer <= group.last; ++layer) {
      planned(rank, layer).recompute = known->second[at(layer - group.first)];
    }
  }

  const Network& network_;
  Plan& plan_;
  std::vector<LayerRun> groups_;
  std::vector<IndexedVector<MapSlot, bool>> exchanged_;
  std::vector<int> fusable_;  // by layer
  std::vector<bool> by_argmax_;
  std::vector<int> last_reader_;
  std::map<std::pair<int, std::vector<int>>, std::vector<RecomputedLayer>>
      recomputed_;  // by first layer of the group, and pools
};

}  // namespace

std::vector<IndexedVector<MapSlot, bool>> exchanged_maps(const Plan& plan) {
  std::vector exchanged(at(plan.ranks),
                        IndexedVector<MapSlot, bool>(plan.group_of.size() + 1, false));
  const auto mark = [&exchanged](int map, const std::vector<Message>& messages) {
    for (const Message& message : messages) {
      exchanged[at(message.from)][map_slot(map)] = true;
      exchanged[at(message.to)][map_slot(map)] = true;
    }
  };
  for (const Transfer& transfer : plan.transfers) {
    if (transfer.kind == TransferKind::FeatureMap) {
      mark(transfer.subject, transfer.messages);
    }
  }
  for (const GroupGeometry& group : plan.groups) {
    for (const OwnerReduction& reduction : group.reductions) {
      mark(reduction.map, reduction.messages);
    }
  }
  return exchanged;
}

void plan_layers(const Network& network, Plan& plan) {
  LayerPlans(network, plan).fill();
}

}  // namespace tessera::partitioner
