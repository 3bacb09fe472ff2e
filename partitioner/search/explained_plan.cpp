#include "partitioner/search/explained_plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "partitioner/cost/simulation.h"
#include "partitioner/search/fitting.h"

namespace tessera::partitioner {

namespace {

// What devices compute, of a mean one.
TimeShares computing_of(const StepCost& cost, int devices) {
  TimeShares time;
  for (const GroupCost& group : cost.groups) {
    for (const RankSeconds& rank : group.ranks) {
      time.forward_s += rank.forward_s;
      time.backward_data_s += rank.backward_data_s;
      time.backward_weights_s += rank.backward_weights_s;
      time.other_s += rank.other_s;
      time.recompute_s += rank.recompute_s;
      time.redundant_s += rank.redundant_s;
    }
  }
  const double share = static_cast<double>(cost.passes) / devices;
  for (double* part : {&time.forward_s,
                       &time.backward_data_s,
                       &time.backward_weights_s,
                       &time.other_s,
                       &time.recompute_s,
                       &time.redundant_s}) {
    *part *= share;
  }
  return time;
}

// Whatever is not computing waits for the slowest device.
TimeShares modelled_shares(const StepCost& cost, int devices) {
  TimeShares time = computing_of(cost, devices);
  const auto passes = static_cast<double>(cost.passes);
  for (const GroupCost& group : cost.groups) {
    time.maps_s +=
        passes * (group.forward_exchange_s + group.backward_exchange_s + group.owner_reduction_s);
    time.statistics_s += passes * group.statistics_s;
    time.gradients_s += group.gradient_reduction_s + group.parameter_all_gather_s;
    time.update_s += group.update_s;
  }
  time.gradients_s += cost.norm_s;
  time.loss_s = passes * cost.loss_s;
  time.idle_s = std::max(0.0, cost.total() - time.step_s());
  time.waiting_s = time.idle_s;
  return time;
}

double& part_of(TimeShares& time, TransferKind kind) {
  switch (kind) {
    case TransferKind::FeatureMap:
    case TransferKind::MapGradient:
      return time.maps_s;
    case TransferKind::BatchStatistics:
    case TransferKind::StatisticsGradient:
      return time.statistics_s;
    case TransferKind::ParameterGradient:
    case TransferKind::ParameterValue:
    case TransferKind::RunningStatistics:
    case TransferKind::GradientNorm:
      return time.gradients_s;
    case TransferKind::Candidates:
    case TransferKind::Assignments:
    case TransferKind::Loss:
      return time.loss_s;
  }
  return time.idle_s;
}

// Where the time of an action counts; nullptr for a layer's computing, which the model tells apart.
double* part_of(TimeShares& time, const Plan& plan, const Action& action) {
  if (action.kind != Action::Kind::Compute) {
    const bool is_second_copy = !plan.transfers.contains(action.transfer);
    return is_second_copy ? &time.gradients_s
                          : &part_of(time, plan.transfers[action.transfer].kind);
  }
  if (action.phase == Phase::Update || action.phase == Phase::GradientNorm) {
    return &time.update_s;
  }
  return action.phase == Phase::Assign || action.phase == Phase::Loss ? &time.loss_s : nullptr;
}

TimeShares simulated_shares(const StepCost& cost,
                            const Plan& plan,
                            const PricedStep& priced,
                            const SimulatedStep& step) {
  const auto devices = static_cast<int>(step.timelines.size());
  TimeShares time = computing_of(cost, devices);
  for (const auto& timeline : step.timelines) {
    for (const TimelineSpan& span : timeline) {
      const double seconds = (span.end_s - span.begin_s) / devices;
      const Action& action = priced.actions[span.action].action;
      if (double* share = part_of(time, plan, action)) {
        *share += seconds;
      }
      time.waiting_s += span.doing == TimelineSpan::Doing::Wait ? seconds : 0;
    }
  }
  time.idle_s = std::max(0.0, step.step_s - time.step_s());
  time.waiting_s += time.idle_s;
  return time;
}

ExplainedPlan explained_replicas(const Network& network,
                                 const ClusterProfile& cluster,
                                 const SearchOptions& options,
                                 const Partition& partition);

// All but what it takes of memory.
ExplainedPlan explained_step(const Network& network,
                             const ClusterProfile& cluster,
                             const SearchOptions& options,
                             const Partition& partition) {
  if (partition.replicas.independent()) {
    return explained_replicas(network, cluster, options, partition);
  }
  ExplainedPlan plan;
  plan.partition = partition;
  const StepCost cost = step_cost(network, partition, options.batch, cluster, options.cost);
  if (!is_simulable(network, cluster.size())) {
    plan.time = modelled_shares(cost, cluster.size());
    plan.energy = step_energy(cluster, device_activities(cost), plan.time.step_s());
    return plan;
  }
  const Plan made = make_plan(network, partition, options.batch);
  const PricedStep step = priced_step(network, made, cluster, options.cost);
  const SimulatedStep simulated = simulate(step, cluster);
  plan.time = simulated_shares(cost, made, step, simulated);
  plan.traffic = step_traffic(step);
  plan.energy = step_energy(cluster, device_activities(made, step, simulated), simulated.step_s);
  return plan;
}

// A step of the slowest replica, and its synchronisation.
ExplainedPlan explained_replicas(const Network& network,
                                 const ClusterProfile& cluster,
                                 const SearchOptions& options,
                                 const Partition& partition) {
  const int count = partition.replicas.count;
  Partition one = one_replica(partition);
  one.gradient_reduction.compression = Compression::Exact;
  SearchOptions of_one = options;
  of_one.batch = options.batch / count;
  std::optional<ExplainedPlan> slowest;
  for (int replica = 0; replica < count; ++replica) {
    ExplainedPlan plan =
        explained_step(network, devices_from(cluster, replica * one.ranks, one.ranks), of_one, one);
    if (!slowest || slowest->time.step_s() < plan.time.step_s()) {
      slowest = std::move(plan);
    }
  }
  slowest->partition = partition;
  TimeShares& time = slowest->time;
  if (!partition.replicas.run_ahead() && options.cost.has_loss) {
    time.loss_s =
        std::max(time.loss_s, static_cast<double>(options.cost.passes) * loss_seconds(cluster));
  }
  const double replica_s = time.step_s();
  const SynchronisationCost cost =
      synchronisation_cost(make_plan(network, partition, options.batch), cluster);
  time.synchronisation_s = cost.added_s(replica_s);
  slowest->replicas = ExplainedReplicas{cost, replica_s};
  if (slowest->traffic) {  // without synchronisation
    slowest->traffic->sent.messages *= count;
    slowest->traffic->sent.bytes *= count;
  }
  slowest->energy.reset();  // that of one replica
  return std::move(*slowest);
}

// The part of a pass that a phase of a layer belongs to.
double PassSeconds::*seconds_of(Phase phase) {
  switch (phase) {
    case Phase::Prepare:
    case Phase::Forward:
    case Phase::Statistics:
    case Phase::Activate:
    case Phase::Assign:
    case Phase::Loss:
      return &PassSeconds::forward_s;
    case Phase::BackwardWeights:
    case Phase::GradientNorm:
    case Phase::ClipGradients:
    case Phase::Update:
      return &PassSeconds::weights_s;
    case Phase::Restore:
    case Phase::Recompute:
    case Phase::BackwardActivation:
    case Phase::BackwardNormalize:
    case Phase::BackwardData:
      return &PassSeconds::backward_s;
  }
  return &PassSeconds::forward_s;
}

}  // namespace

TimeShares time_shares(const Network& network,
                       const ClusterProfile& cluster,
                       const SearchOptions& options,
                       const Partition& partition) {
  return explained_step(network, cluster, options, partition).time;
}

std::vector<PassSeconds> mean_computing(const Network& network,
                                        const ClusterProfile& cluster,
                                        const SearchOptions& options,
                                        const Partition& partition) {
  const Plan plan = make_plan(network, partition, options.batch);
  std::vector<PassSeconds> result(network.layers.size());
  for (const PricedAction& priced : priced_step(network, plan, cluster, options.cost).actions) {
    if (priced.action.kind == Action::Kind::Compute && priced.action.layer != kNoLayer) {
      const double sum = std::accumulate(priced.seconds.begin(), priced.seconds.end(), 0.0);
      result[static_cast<std::size_t>(priced.action.layer)].*seconds_of(priced.action.phase) +=
          sum / cluster.size();
    }
  }
  return result;
}

StepTraffic step_traffic(const PricedStep& step) {
  StepTraffic traffic;
  std::vector<double> sent(static_cast<std::size_t>(step.ranks));
  std::vector<double> received(sent.size());
  for (const PricedAction& priced : step.actions) {
    if (priced.action.kind != Action::Kind::Start) {
      continue;
    }
    for (const Parcel& parcel : step.transfers[priced.action.transfer].parcels) {
      traffic.sent.messages += parcel.messages;
      sent[static_cast<std::size_t>(parcel.from)] += parcel.bytes;
      received[static_cast<std::size_t>(parcel.to)] += parcel.bytes;
    }
  }
  traffic.sent.bytes = std::llround(std::accumulate(sent.begin(), sent.end(), 0.0));
  traffic.busiest_bytes =
      std::llround(std::max(*std::max_element(sent.begin(), sent.end()),
                            *std::max_element(received.begin(), received.end())));
  return traffic;
}

ExplainedPlan explained(const Network& network,
                        const ClusterProfile& cluster,
                        const SearchOptions& options,
                        const Partition& partition) {
  ExplainedPlan plan = explained_step(network, cluster, options, partition);
  if (options.counts_memory) {
    Candidate candidate;
    candidate.memory = searched_memory(network, cluster, options, partition);
    plan.most_bytes = candidate.most_bytes();
    plan.fits =
        largest_shortage(candidate.memory, memory_limits(cluster, options)).missing_bytes() <= 0;
  }
  return plan;
}

const char* what_limits(const TimeShares& time) {
  struct Part {
    const char* name;
    double seconds;
  };
  const Part parts[] = {{"exchange of maps", time.maps_s},
                        {"statistics", time.statistics_s},
                        {"gradient reduction", time.gradients_s},
                        {"loss", time.loss_s},
                        {"synchronisation", time.synchronisation_s},
                        {"idle devices", time.idle_s},
                        {"redundant work", time.redundant_s}};
  const Part* most =
      std::max_element(std::begin(parts), std::end(parts), [](const Part& a, const Part& b) {
        return a.seconds < b.seconds;
      });
  constexpr double kLittle = 0.1;
  return most->seconds < kLittle * time.step_s() ? "computing" : most->name;
}

}  // namespace tessera::partitioner
