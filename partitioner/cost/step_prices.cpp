#include "partitioner/cost/step_prices.h"

#include <algorithm>

#include "partitioner/cost/layer_times.h"
#include "partitioner/network/layer_traits.h"
#include "partitioner/plan/kept_parts.h"
#include "partitioner/plan/transfers.h"
#include "partitioner/plan/trunk_homes.h"

namespace tessera::partitioner {

namespace {

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

double share(const Region& part, const Region& whole) {
  return static_cast<double>(part.volume()) / static_cast<double>(whole.volume());
}

class StepPrices {
 public:
  StepPrices(const Network& network,
             const Plan& plan,
             const ClusterProfile& cluster,
             const CostOptions& options)
      : network_(network),
        plan_(plan),
        cluster_(cluster),
        options_(options),
        times_(network, plan.kernels, cluster) {
    for (const GroupGeometry& group : plan.groups) {
      const std::vector<RecomputedLayer> runs = recomputed_work(network, group);
      recomputed_.insert(recomputed_.end(), runs.begin(), runs.end());
    }
  }

  PricedStep step(const Schedule& schedule) {
    const Index passes = options_.passes;
    result_.ranks = plan_.ranks;
    if (options_.trunk_given) {
      spared_ = actions_of_trunk(network_, plan_, schedule);
    }
    for (const Transfer& transfer : plan_.transfers) {
      result_.transfers.push_back(priced(transfer));
    }
    for (const Action& action : schedule.actions) {
      seconds_.push_back(seconds_of(action));
    }
    const auto add = [&](ActionIndex number, Index pass) { this->add(schedule, number, pass); };
    const auto sums_up = [&](ActionIndex number) {
      const Action& action = schedule.actions[number];
      return action.kind == Action::Kind::Finish &&
             plan_.transfers[action.transfer].kind == TransferKind::ParameterGradient;
    };
    for (ActionIndex i = schedule.update.begin; i < schedule.update.end; ++i) {
      if (!sums_up(i)) {
        add(i, 0);  // of the step before
      }
    }
    if (options_.kept.is_on) {
      add_second_copies(schedule.forward.begin, Action::Kind::Start);
    }
    for (Index pass = 0; pass < passes; ++pass) {
      for_each_action(schedule, schedule.forward, pass, passes, add);
      if (options_.kept.is_on && pass + 1 == passes) {
        add_second_copies(schedule.forward.end, Action::Kind::Finish);
      }
      for (const Section& section : {schedule.loss, schedule.backward}) {
        for_each_action(schedule, section, pass, passes, add);
      }
    }
    for (ActionIndex i = schedule.update.begin; i < schedule.update.end; ++i) {
      if (sums_up(i)) {
        add(i, passes - 1);
      }
    }
    return std::move(result_);
  }

 private:
  void add(const Schedule& schedule, ActionIndex number, Index pass) {
    if (options_.trunk_given && spared_[number]) {
      return;
    }
    result_.actions.push_back({schedule.actions[number], number, pass, seconds_[number]});
  }

  void add_second_copies(ActionIndex next, Action::Kind kind) {
    if (kind == Action::Kind::Start) {
      PricedTransfer copies{.parcels = {}, .bulk = true};
      for (const SecondCopy& copy : second_copies(plan_, options_.trained, options_.kept)) {
        copies.parcels.push_back(
            {copy.from, copy.to, static_cast<double>(copy.elements * kSingleBytes)});
      }
      second_copies_ = result_.transfers.push_back(std::move(copies));
    }
    const Action action{.kind = kind, .transfer = second_copies_};
    result_.actions.push_back({action, next, 0, {}});
  }

  [[nodiscard]] PricedTransfer priced(const Transfer& transfer) const {
    PricedTransfer result{.parcels = {},
                          .in_order = transfer.adds,
                          .bulk = transfer.yields,
                          .waits_for_sends = transfer.waits_for_sends};
    for_each_message(plan_, transfer, [&](int from, int to, const Payload& payload) {
      if (from != to) {
        const Index bytes = message_bytes(plan_, transfer, payload, kSingleBytes);
        result.parcels.push_back({from, to, static_cast<double>(bytes)});
      }
    });
    return result;
  }

  std::vector<double> seconds_of(const Action& action) {
    std::vector<double> seconds;
    if (action.kind != Action::Kind::Compute && !updates_what_arrives(action)) {
      return seconds;
    }
    seconds.reserve(at(plan_.ranks));
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      if (action.kind == Action::Kind::Finish) {
        const int bucket = plan_.transfers[action.transfer].subject;
        seconds.push_back(update_seconds(bucket, rank, &ParameterPlan::updated) -
                          update_seconds(bucket, rank, &ParameterPlan::owned));
      } else if (action.phase == Phase::Update) {
        seconds.push_back(update_seconds(action.bucket, rank, &ParameterPlan::owned));
      } else if (action.phase == Phase::GradientNorm) {
        double all = 0;
        for (int bucket = 0; bucket < static_cast<int>(plan_.buckets.size()); ++bucket) {
          all += update_seconds(bucket, rank, &ParameterPlan::owned);
        }
        seconds.push_back(kNormOfUpdate * all);
      } else if (action.layer == kNoLayer) {
        seconds.push_back(0);
      } else {
        seconds.push_back(layer_seconds(action, rank));
      }
    }
    return seconds;
  }

  double layer_seconds(const Action& action, int rank) {
    const Tile& tile = plan_.tile(action.layer, rank);
    const LayerSeconds& priced_layer =
        times_.seconds(action.layer, rank, tile.computed, tile.backward);
    const bool activates = has_weights(network_.layer(action.layer).operation);
    switch (action.phase) {
      case Phase::Forward:
        return (priced_layer.forward_s + (activates ? 0 : priced_layer.other_forward_s)) *
               forward_share(action, rank);
      case Phase::Activate:
        return priced_layer.other_forward_s;
      case Phase::Recompute: {
        const RecomputedLayer& runs = recomputed_[at(action.layer)];
        return runs.runs ? recompute_seconds(priced_layer, runs) : 0;
      }
      case Phase::BackwardActivation:
        return priced_layer.other_backward_s;
      case Phase::BackwardData:
        return priced_layer.backward_data_s + (activates ? 0 : priced_layer.other_backward_s);
      case Phase::BackwardWeights:
        return priced_layer.backward_weights_s * weights_share(action, rank);
      case Phase::Prepare:
      case Phase::Statistics:
      case Phase::BackwardNormalize:  // in those that come before
      case Phase::Restore:
      case Phase::Assign:
      case Phase::Loss:
      case Phase::GradientNorm:
      case Phase::ClipGradients:  // in most steps nothing
      case Phase::Update:
        return 0;
    }
    return 0;
  }

  [[nodiscard]] double forward_share(const Action& action, int rank) const {
    const Region& computed = plan_.tile(action.layer, rank).computed;
    double sum = 0;
    for (const TilePart& part : plan_.layers[at(rank)][at(action.layer)].forward_parts) {
      sum += part.awaits == action.part ? share(part.region, computed) : 0;
    }
    return sum;
  }

  [[nodiscard]] double weights_share(const Action& action, int rank) const {
    const WeightParts& parts = plan_.layers[at(rank)][at(action.layer)].weight_parts;
    double sum = 0;
    for (const Region& cells : action.part == 0 ? parts.at_once : parts.deferred) {
      sum += share(cells, plan_.tile(action.layer, rank).backward);
    }
    return sum;
  }

  // Gradients of other owners, by which all who hold their elements update them.
  [[nodiscard]] bool updates_what_arrives(const Action& action) const {
    return plan_.gradient_reduction.optimizer == OptimizerStates::Replicated &&
           action.kind == Action::Kind::Finish &&
           plan_.transfers[action.transfer].kind == TransferKind::ParameterValue;
  }

  [[nodiscard]] double update_seconds(int bucket,
                                      int rank,
                                      std::vector<std::vector<Range>> ParameterPlan::*runs) const {
    Index elements = 0;
    for (const int parameter : plan_.buckets[at(bucket)].parameters) {
      for (const Range& run : (plan_.parameters[at(parameter)].*runs)[at(rank)]) {
        elements += run.size();
      }
    }
    return static_cast<double>(elements) / cluster_.device(rank).updated_weights_per_s;
  }

  const Network& network_;
  const Plan& plan_;
  const ClusterProfile& cluster_;
  const CostOptions& options_;
  LayerTimes times_;
  std::vector<RecomputedLayer> recomputed_;  // by layer
  IndexedVector<ActionIndex, bool> spared_;  // where the maps of the frozen trunk are given
  IndexedVector<ActionIndex, std::vector<double>> seconds_;
  TransferIndex second_copies_ = kNoTransfer;
  PricedStep result_;
};

}  // namespace

PricedStep priced_step(const Network& network,
                       const Plan& plan,
                       const ClusterProfile& cluster,
                       const CostOptions& options) {
  const Schedule schedule =
      options.has_loss ? plan.schedule : make_schedule(network, plan, {.has_loss = false});
  return StepPrices(network, plan, cluster, options).step(schedule);
}

}  // namespace tessera::partitioner
