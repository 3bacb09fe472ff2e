#include "partitioner/plan/schedule.h"

#include <algorithm>
#include <utility>

#include "partitioner/network/layer_traits.h"
#include "partitioner/plan/forward_parts.h"
#include "partitioner/plan/plan_totals.h"
#include "partitioner/plan/recomputation.h"

namespace tessera::partitioner {

namespace {

// What a rank restores of normalised maps, each before the first action that reads it.
struct Restoring {
  const std::vector<LayerPlan>* layers;  // of the rank
  std::vector<bool> pending;             // by map: kept as pre-activations alone, and not back yet
};

class ScheduleMaker {
 public:
  ScheduleMaker(const Network& network, const Plan& plan, const ScheduleOptions& options)
      : network_(network),
        plan_(plan),
        options_(options),
        groups_(groups_of(plan)),
        copied_(network.layers.size() + 1),
        awaited_(network.layers.size()),
        added_(network.layers.size() + 1),
        read_gradients_(network.layers.size()),
        statistics_(network.layers.size()),
        last_part_(network.layers.size()) {
    for (const TransferIndex i : plan.transfers.indices()) {
      sort_in(i, plan.transfers[i]);
    }
  }

  Schedule make() {
    schedule_.forward = section([&] { forward(); });
    schedule_.loss = section([&] { loss(); });
    schedule_.backward = section([&] { backward(); });
    schedule_.update = section([&] { update(); });
    return std::move(schedule_);
  }

 private:
  using Kind = Action::Kind;
  using Passes = Action::Passes;
  static std::size_t at(int index) { return static_cast<std::size_t>(index); }

  void sort_in(TransferIndex number, const Transfer& transfer) {
    switch (transfer.kind) {
      case TransferKind::FeatureMap:
        if (transfer.is_sent) {
          const int reader = first_reader(network_, plan_, transfer.subject, transfer.group);
          copied_[map_slot(transfer.subject)].push_back(number);
          awaited_[at(reader)].push_back(number);
          last_part_[at(reader)] = std::max(last_part_[at(reader)], transfer.part + 1);
        }
        break;
      case TransferKind::MapGradient:
        if (transfer.subject == kImage && !options_.image_gradient) {
          break;
        }
        added_[map_slot(transfer.subject)].push_back(number);
        if (plan_.group(transfer.subject) != transfer.group) {
          const int reader = first_reader(network_, plan_, transfer.subject, transfer.group);
          read_gradients_[at(reader)].push_back(number);
        }
        break;
      case TransferKind::BatchStatistics:
        statistics_[at(transfer.subject)].first = number;
        break;
      case TransferKind::StatisticsGradient:
        statistics_[at(transfer.subject)].second = number;
        break;
      case TransferKind::Candidates:
        candidates_.push_back(number);
        break;
      case TransferKind::Assignments:
        assignments_.push_back(number);
        break;
      case TransferKind::Loss:
        losses_.push_back(number);
        break;
      case TransferKind::RunningStatistics:
        running_statistics_ = number;
        break;
      case TransferKind::GradientNorm:
        norms_.push_back(number);
        break;
      case TransferKind::ParameterGradient:
      case TransferKind::ParameterValue:
        break;
    }
  }

  template <class Fill>
  Section section(Fill fill) {
    const ActionIndex begin = schedule_.actions.end_index();
    fill();
    return {begin, schedule_.actions.end_index()};
  }

  void compute(Phase phase, int layer, int part = 0) {
    schedule_.actions.push_back(
        {.kind = Kind::Compute, .phase = phase, .layer = layer, .part = part});
  }
  void start(TransferIndex transfer, Passes passes = Passes::Every) {
    schedule_.actions.push_back({.kind = Kind::Start, .passes = passes, .transfer = transfer});
  }
  void finish(TransferIndex transfer, Passes passes = Passes::Every) {
    schedule_.actions.push_back({.kind = Kind::Finish, .passes = passes, .transfer = transfer});
  }

  template <class Holds>
  [[nodiscard]] bool on_some_rank(int layer, Holds holds) const {
    return std::any_of(plan_.layers.begin(), plan_.layers.end(), [&](const auto& layers) {
      return holds(layers[at(layer)]);
    });
  }

  [[nodiscard]] bool uses_weights(int layer) const {
    return has_weights(network_.layer(layer).operation);
  }
  [[nodiscard]] bool takes_statistics(int layer) const {
    return takes_batch_statistics(network_.layer(layer));
  }
  [[nodiscard]] bool exchanges_statistics(int layer) const {
    return takes_statistics(layer) && options_.training && options_.statistics == Statistics::Batch;
  }

  void forward() {
    for (const TransferIndex transfer : copied_[map_slot(kImage)]) {
      start(transfer);
    }
    for (int layer = 0; layer < network_.size(); ++layer) {
      for (const BucketPlan& bucket : plan_.buckets) {
        if (bucket.layers.first == layer && options_.update) {
          finish(bucket.values, Passes::First);
        }
      }
      pre_activations(layer);
      if (takes_statistics(layer) && options_.training &&
          options_.statistics != Statistics::Running) {
        compute(Phase::Statistics, layer);
      }
      if (exchanges_statistics(layer)) {
        start(statistics_[at(layer)].first);
        finish(statistics_[at(layer)].first);
      }
      if (uses_weights(layer)) {
        compute(Phase::Activate, layer);
      }
      for (const TransferIndex transfer : copied_[map_slot(layer)]) {
        start(transfer);
      }
    }
  }

  void pre_activations(int layer) {
    if (on_some_rank(layer, [](const LayerPlan& planned) { return planned.prepares_filters; })) {
      compute(Phase::Prepare, layer);
    }
    for (int part = 0; part <= last_part_[at(layer)]; ++part) {
      for (const TransferIndex transfer : awaited_[at(layer)]) {
        if (plan_.transfers[transfer].part + 1 == part) {
          finish(transfer);
        }
      }
      const bool runs = on_some_rank(layer, [part](const LayerPlan& planned) {
        return std::any_of(planned.forward_parts.begin(),
                           planned.forward_parts.end(),
                           [part](const TilePart& tile_part) { return tile_part.awaits == part; });
      });
      if (runs) {
        compute(Phase::Forward, layer, part);
      }
    }
  }

  void loss() {
    if (!options_.has_loss) {
      return;
    }
    if (!candidates_.empty()) {
      exchange(candidates_);
      compute(Phase::Assign, kNoLayer);
      exchange(assignments_);
    }
    compute(Phase::Loss, kNoLayer);
    exchange_in_turn(losses_);
  }

  void exchange_in_turn(const std::vector<TransferIndex>& transfers) {
    for (const TransferIndex transfer : transfers) {
      start(transfer);
      finish(transfer);
    }
  }

  void exchange(const std::vector<TransferIndex>& transfers) {
    for (const TransferIndex transfer : transfers) {
      start(transfer);
    }
    for (const TransferIndex transfer : transfers) {
      finish(transfer);
    }
  }

  void backward() {
    if (!options_.training) {
      return;
    }
    begin_restoring();
    int deferred = kNoLayer;  // the layer whose weights are put off
    for (int layer = network_.size() - 1; layer >= 0; --layer) {
      recompute_before(layer);
      if (!network_.layer(layer).has_backward) {
        continue;
      }
      finish_gradient(layer);
      if (uses_weights(layer)) {
        compute(Phase::BackwardActivation, layer);
      }
      if (exchanges_statistics(layer)) {
        start(statistics_[at(layer)].second);
      }
      if (deferred != kNoLayer && plan_.deferred[at(deferred)].next == layer) {
        weights(deferred, &WeightParts::deferred, 1);
        start_gradients(std::exchange(deferred, kNoLayer), layer + 1);
      }
      if (exchanges_statistics(layer)) {
        finish(statistics_[at(layer)].second);
      }
      if (takes_statistics(layer)) {
        compute(Phase::BackwardNormalize, layer);
      }
      restore_for(Phase::BackwardData, layer);
      compute(Phase::BackwardData, layer);
      for (const TransferIndex transfer : read_gradients_[at(layer)]) {
        start(transfer);
      }
      weights(layer, &WeightParts::at_once, 0);
      if (plan_.deferred[at(layer)].next != kNoLayer) {
        deferred = layer;
      } else if (deferred == kNoLayer) {
        start_gradients(layer, layer);
      }
    }
    finish_gradient(kImage);
  }

  void weights(int layer, std::vector<Region> WeightParts::*cells, int part) {
    if (uses_weights(layer) && on_some_rank(layer, [cells](const LayerPlan& planned) {
          return !(planned.weight_parts.*cells).empty();
        })) {
      compute(Phase::BackwardWeights, layer, part);
    }
  }

  // What others have found for the gradient of a map.
  void finish_gradient(int map) {
    for (const TransferIndex transfer : added_[map_slot(map)]) {
      if (plan_.transfers[transfer].group == plan_.group(map)) {
        start(transfer);  // reduced to its owners within the group
      }
      finish(transfer);
    }
  }

  // The gradients of all weights from layer `complete` to `last` are there now.
  void start_gradients(int last, int complete) {
    for (int layer = last; layer >= complete; --layer) {
      for (const BucketPlan& bucket : plan_.buckets) {
        if (bucket.layers.first == layer) {
          start(gradients_of(bucket), Passes::Last);
        }
      }
    }
  }

  // Normalising sums those of shift and scale over ranks that share batch statistics.
  [[nodiscard]] TransferIndex gradients_of(const BucketPlan& bucket) const {
    return options_.statistics == Statistics::Batch ? bucket.gradients : bucket.all_gradients;
  }

  // Where a recomputed group ends, what runs again of it.
  void recompute_before(int last) {
    const int group = plan_.group(last);
    const LayerRun layers = groups_[at(group)];
    if (layers.last != last || !plan_.recomputes(group)) {
      return;
    }
    const std::vector<int> no_pools(network_.layers.size(), kNoLayer);
    const auto without_pools = recomputed_layers(network_, layers, no_pools);
    const auto work = recomputed_work(network_, layers, plan_.groups[at(group)].reductions);
    for (int layer = layers.first; layer <= last; ++layer) {
      const auto runs = [](const LayerPlan& planned) { return planned.recompute.runs; };
      const std::size_t in_group = at(layer - layers.first);
      if (on_some_rank(layer, runs) || without_pools[in_group].runs || work[in_group].runs) {
        restore_for(Phase::Recompute, layer);
        compute(Phase::Recompute, layer);
      }
    }
  }

  // Normalised maps that no message and no fused pool takes come back from their pre-activations,
  // which are kept; those of recomputed groups from pre-activations that are computed again.
  void begin_restoring() {
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      Restoring& rank_restoring = restoring_.emplace_back();
      rank_restoring.layers = &plan_.layers[at(rank)];
      for (int map = 0; map < network_.size(); ++map) {
        rank_restoring.pending.push_back((*rank_restoring.layers)[at(map)].restores_output);
      }
    }
  }

  void restore_for(Phase phase, int layer) {
    std::vector<int> maps;
    for (Restoring& restoring : restoring_) {
      if (!reads_values(*restoring.layers, phase, layer)) {
        continue;
      }
      for (const int map : network_.layer(layer).inputs) {
        // What runs again does not wait for pre-activations of a group that has to run again, too.
        const bool is_kept = phase == Phase::Recompute && plan_.recomputes(plan_.group(map));
        if (map != kImage && restoring.pending[at(map)] && !is_kept) {
          restoring.pending[at(map)] = false;
          maps.push_back(map);
        }
      }
    }
    std::sort(maps.begin(), maps.end());
    maps.erase(std::unique(maps.begin(), maps.end()), maps.end());
    for (const int map : maps) {
      compute(Phase::Restore, map);
    }
  }

  [[nodiscard]] bool reads_values(const std::vector<LayerPlan>& layers,
                                  Phase phase,
                                  int layer) const {
    return phase == Phase::Recompute ? layers[at(layer)].recompute.runs
                                     : backward_reads_inputs(network_.layer(layer));
  }

  void update() {
    if (!options_.training) {
      return;
    }
    const int last = static_cast<int>(plan_.buckets.size()) - 1;
    const bool clips = network_.max_gradient_norm > 0 && options_.update && last >= 0;
    if (clips) {
      for (int bucket = last; bucket >= 0; --bucket) {
        finish(gradients_of(plan_.buckets[at(bucket)]));
      }
      compute(Phase::GradientNorm, kNoLayer);
      exchange_in_turn(norms_);
      compute(Phase::ClipGradients, kNoLayer);
    }
    for (int bucket = last; bucket >= 0; --bucket) {
      if (!clips) {
        finish(gradients_of(plan_.buckets[at(bucket)]));
      }
      if (options_.update) {
        schedule_.actions.push_back({.phase = Phase::Update, .bucket = bucket});
        start(plan_.buckets[at(bucket)].values);
      }
    }
    if (options_.update && options_.statistics == Statistics::Tile) {
      start(running_statistics_);
      finish(running_statistics_);
    }
  }

  const Network& network_;
  const Plan& plan_;
  ScheduleOptions options_;
  std::vector<LayerRun> groups_;
  // Transfers that are used:
  IndexedVector<MapSlot, std::vector<TransferIndex>> copied_;
  std::vector<std::vector<TransferIndex>> awaited_;           // by the layer that waits for them
  IndexedVector<MapSlot, std::vector<TransferIndex>> added_;  // gradients
  std::vector<std::vector<TransferIndex>>
      read_gradients_;  // by the layer that makes them, the last to do so
  std::vector<std::pair<TransferIndex, TransferIndex>> statistics_;  // by layer: forward, backward
  std::vector<TransferIndex> candidates_;
  std::vector<TransferIndex> assignments_;
  std::vector<TransferIndex> losses_;
  std::vector<TransferIndex> norms_;
  TransferIndex running_statistics_;
  std::vector<int> last_part_;        // by layer: of awaited_, counted from 1; 0 if there are none
  std::vector<Restoring> restoring_;  // by rank
  Schedule schedule_;
};

}  // namespace

const char* name_of(Phase phase) {
  switch (phase) {
    case Phase::Prepare:
      return "prepare";
    case Phase::Forward:
      return "forward";
    case Phase::Statistics:
      return "statistics";
    case Phase::Activate:
      return "activate";
    case Phase::Assign:
      return "assign";
    case Phase::Loss:
      return "loss";
    case Phase::Restore:
      return "restore";
    case Phase::Recompute:
      return "recompute";
    case Phase::BackwardActivation:
      return "backward activation";
    case Phase::BackwardNormalize:
      return "backward normalize";
    case Phase::BackwardData:
      return "backward data";
    case Phase::BackwardWeights:
      return "backward weights";
    case Phase::GradientNorm:
      return "gradient norm";
    case Phase::ClipGradients:
      return "clip gradients";
    case Phase::Update:
      return "update";
  }
  return "";
}

const char* name_of(Action::Kind kind) {
  switch (kind) {
    case Action::Kind::Compute:
      return "compute";
    case Action::Kind::Start:
      return "start";
    case Action::Kind::Finish:
      return "finish";
  }
  return "";
}

const char* name_of(Action::Passes passes) {
  switch (passes) {
    case Action::Passes::Every:
      return "every";
    case Action::Passes::First:
      return "first";
    case Action::Passes::Last:
      return "last";
  }
  return "";
}

Schedule make_schedule(const Network& network, const Plan& plan, const ScheduleOptions& options) {
  return ScheduleMaker(network, plan, options).make();
}

}  // namespace tessera::partitioner
