#include "engine/session/step_prediction.h"

#include <algorithm>

#include "partitioner/cost/simulation.h"
#include "partitioner/search/explained_plan.h"

namespace tessera::engine {

namespace {

// A step as it is priced and, where it is not too large for that, played through.
struct PlayedStep {
  partitioner::PricedStep priced;
  bool has_loss = true;  // among what is priced
  std::optional<partitioner::SimulatedStep> simulated;
};

PlayedStep played_step(const PartitionRequest& request,
                       const partitioner::Network& network,
                       const Workload& workload,
                       const partitioner::Partition& partition,
                       const partitioner::Plan& plan,
                       const partitioner::ClusterProfile& cluster) {
  const partitioner::CostOptions cost =
      prediction_options(network, request, workload, partition).cost;
  PlayedStep step{priced_step(network, plan, cluster, cost), cost.has_loss, std::nullopt};
  if (is_simulable(network, cluster.size())) {
    step.simulated = simulate(step.priced, cluster);
  }
  return step;
}

// The number of an action of a played step in the plan's schedule, which always has the loss.
partitioner::ActionIndex number_of(const PlayedStep& played,
                                   const partitioner::PricedAction& priced,
                                   const partitioner::Schedule& schedule) {
  const partitioner::Section& loss = schedule.loss;
  const bool is_behind = !played.has_loss && priced.number >= loss.begin;
  return priced.number + (is_behind ? loss.end - loss.begin : 0);
}

std::vector<std::vector<double>> action_seconds(const PlayedStep& played,
                                                const partitioner::Plan& plan) {
  const partitioner::PricedStep& step = played.priced;
  std::vector<std::vector<double>> result(static_cast<std::size_t>(plan.ranks),
                                          std::vector<double>(plan.schedule.actions.size(), -1));
  const auto add = [&](std::size_t rank, const partitioner::PricedAction& priced, double seconds) {
    double& sum =
        result[rank][static_cast<std::size_t>(number_of(played, priced, plan.schedule).number())];
    sum = std::max(sum, 0.0) + seconds;
  };
  for (const partitioner::PricedAction& priced : step.actions) {
    const bool computes = priced.action.kind == partitioner::Action::Kind::Compute;
    for (std::size_t rank = 0; computes && rank < result.size(); ++rank) {
      add(rank, priced, priced.seconds[rank]);
    }
  }
  if (played.simulated) {
    const partitioner::SimulatedStep& simulated = *played.simulated;
    for (std::size_t rank = 0; rank < result.size(); ++rank) {
      for (const partitioner::PricedAction& priced : step.actions) {
        if (priced.action.kind != partitioner::Action::Kind::Compute) {
          add(rank, priced, 0);
        }
      }
      for (const partitioner::TimelineSpan& span : simulated.timelines[rank]) {
        const auto& priced = step.actions[span.action];
        if (priced.action.kind != partitioner::Action::Kind::Compute) {
          add(rank, priced, span.end_s - span.begin_s);
        }
      }
    }
  }
  return result;
}

// What a rank has to wait for at the end of a step counts as waiting.
StepShares shares_of(const PlayedStep& played, std::size_t rank, const partitioner::Plan& plan) {
  using Doing = partitioner::TimelineSpan::Doing;
  const partitioner::Schedule& schedule = plan.schedule;
  StepShares shares;
  double sum_s = 0;
  for (const partitioner::TimelineSpan& span : played.simulated->timelines[rank]) {
    const double seconds = span.end_s - span.begin_s;
    const partitioner::ActionIndex number =
        number_of(played, played.priced.actions[span.action], schedule);
    sum_s += seconds;
    if (span.doing == Doing::Wait) {
      shares.waiting_s += seconds;
    } else if (span.doing != Doing::Compute) {
      shares.exchanging_s += seconds;
    } else if (number < schedule.forward.end) {
      shares.forward_s += seconds;
    } else if (number < schedule.backward.end) {
      shares.backward_s += seconds;
    } else {
      shares.update_s += seconds;
    }
  }
  shares.step_s = played.simulated->step_s;
  shares.waiting_s += std::max(shares.step_s - sum_s, 0.0);
  return shares;
}

}  // namespace

std::vector<std::vector<double>> predicted_actions(const PartitionRequest& request,
                                                   const partitioner::Network& network,
                                                   const Workload& workload,
                                                   const partitioner::Partition& partition,
                                                   const partitioner::Plan& plan) {
  if (!profiled_devices(request)) {
    return {};
  }
  const auto cluster = described_cluster(request, partition.ranks, {});
  return action_seconds(played_step(request, network, workload, partition, plan, cluster), plan);
}

PredictedSteps predicted_steps(const PartitionRequest& request,
                               const partitioner::Network& network,
                               const Workload& workload,
                               const partitioner::Partition& partition,
                               const partitioner::Plan& plan) {
  const auto cluster = profiled_cluster(request, partition.ranks);
  if (!cluster) {
    return {};
  }
  const PlayedStep played = played_step(request, network, workload, partition, plan, *cluster);
  PredictedSteps steps;
  steps.step_s =
      time_shares(
          network, *cluster, prediction_options(network, request, workload, partition), partition)
          .step_s();
  steps.actions_s = action_seconds(played, plan);
  for (std::size_t rank = 0; played.simulated && rank < steps.actions_s.size(); ++rank) {
    steps.per_rank.push_back(shares_of(played, rank, plan));
  }
  return steps;
}

}  // namespace tessera::engine
