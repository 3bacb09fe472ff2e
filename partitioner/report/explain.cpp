#include "partitioner/report/explain.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "partitioner/base/errors.h"
#include "partitioner/cost/simulation.h"
#include "partitioner/search/fitting.h"
#include "partitioner/search/search_space.h"

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
  time.loss_s = passes * cost.loss_s;
  time.idle_s = std::max(0.0, cost.total() - time.step_s());
  time.waiting_s = time.idle_s;
  return time;
}

double& share_of(TimeShares& time, TransferKind kind) {
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
      return time.gradients_s;
    case TransferKind::Loss:
      return time.loss_s;
  }
  return time.idle_s;
}

// Where the time of an action counts; nullptr for a layer's computing, which the model tells apart.
double* share_of(TimeShares& time, const Plan& plan, const Action& action) {
  if (action.kind != Action::Kind::Compute) {
    return &share_of(time, plan.transfers[static_cast<std::size_t>(action.transfer)].kind);
  }
  if (action.phase == Phase::Update) {
    return &time.update_s;
  }
  return action.phase == Phase::Loss ? &time.loss_s : nullptr;
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
      const Action& action = priced.actions[static_cast<std::size_t>(span.action)].action;
      if (double* share = share_of(time, plan, action)) {
        *share += seconds;
      }
      time.waiting_s += span.doing == TimelineSpan::Doing::Wait ? seconds : 0;
    }
  }
  time.idle_s = std::max(0.0, step.step_s - time.step_s());
  time.waiting_s += time.idle_s;
  return time;
}

// All but what it takes of memory.
ExplainedPlan explained_step(const Network& network,
                             const ClusterProfile& cluster,
                             const SearchOptions& options,
                             const Partition& partition) {
  ExplainedPlan plan;
  plan.partition = partition;
  const StepCost cost = step_cost(network, partition, options.batch, cluster, options.cost);
  if (!is_simulable(network, cluster.size())) {
    plan.time = modelled_shares(cost, cluster.size());
    return plan;
  }
  const Plan made = make_plan(network, partition, options.batch);
  const PricedStep step = priced_step(network, made, cluster, options.cost);
  plan.time = simulated_shares(cost, made, step, simulate(step, cluster));
  plan.traffic = step_traffic(step);
  return plan;
}

// The fastest partition whose only group has all layers, the sending of pictures apart.
std::optional<Partition> single_group(const Network& network,
                                      const ClusterProfile& cluster,
                                      const SearchOptions& options,
                                      const Partition& like) {
  std::optional<Partition> best;
  double best_s = kInfiniteRate;
  std::vector<ConvolutionKernels> kernels = like.kernels;
  kernels.resize(network.layers.size());
  GroupCosts costs(network, kernels, like.gradient_reduction, cluster);
  for (const Arrangement& arrangement :
       arrangements(device_speeds(network, options.kernels, cluster), options.batch)) {
    const auto group = arranged_group(network, 0, network.size() - 1, arrangement, options.batch);
    if (!group || (cluster.size() > 1 && group->tiles() == 1)) {
      continue;
    }
    const double seconds =
        costs.inner(group_geometry(network, *group, cluster.size(), options.batch))
            .total(options.cost.passes);
    if (seconds < best_s) {
      best_s = seconds;
      best = like;
      best->groups = {*group};
    }
  }
  return best;
}

// What a shorthand means, or nothing where it does not fit the network.
std::optional<Partition> shorthand_partition(const Network& network,
                                             const SearchOptions& options,
                                             const Partition& like,
                                             const Shorthand& shorthand) {
  try {
    Partition partition = make_partition(network, shorthand);
    partition.kernels = like.kernels;
    partition.reader = like.reader;
    partition.gradient_reduction = like.gradient_reduction;
    validate(partition, network, options.batch, "");
    return partition;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

Shorthand plain_grid(int ranks) {
  Shorthand shorthand;
  shorthand.ranks = ranks;
  for (Index rows = 1; rows * rows <= ranks; ++rows) {
    if (ranks % rows == 0) {
      shorthand.grid_rows = rows;
      shorthand.grid_cols = ranks / rows;
    }
  }
  return shorthand;
}

Shorthand data_parallel(int ranks) {
  Shorthand shorthand;
  shorthand.ranks = ranks;
  shorthand.data_parallel_from = 0;
  return shorthand;
}

std::optional<Partition> without_fusion(const Network& network,
                                        const ClusterProfile& cluster,
                                        SearchOptions options) {
  options.longest_group = 1;
  options.candidates = 1;
  const SearchResult result = search_partition(network, cluster, options);
  return result.candidates.empty() ? std::nullopt
                                   : std::optional(result.candidates.front().partition);
}

class Comparison {
 public:
  Comparison(const Network& network,
             const ClusterProfile& cluster,
             const SearchOptions& options,
             const Partition& chosen)
      : network_(network), cluster_(cluster), options_(options), chosen_(chosen) {}

  std::vector<ExplainedPlan> run() {
    add("chosen", chosen_);
    if (const auto partition = next_best()) {
      add("next best", *partition);
    }
    for (const auto& [name, partition] : simple_baselines(network_, cluster_, options_, chosen_)) {
      add(name, partition);
    }
    return std::move(plans_);
  }

 private:
  void add(const std::string& name, const Partition& partition) {
    plans_.push_back(explained(network_, cluster_, options_, partition));
    plans_.back().name = name;
  }

  [[nodiscard]] std::optional<Partition> next_best() const {
    for (const Candidate& candidate : search_partition(network_, cluster_, options_).candidates) {
      if (candidate.partition.groups != chosen_.groups) {
        return candidate.partition;
      }
    }
    return std::nullopt;
  }

  const Network& network_;
  const ClusterProfile& cluster_;
  const SearchOptions& options_;
  const Partition& chosen_;
  std::vector<ExplainedPlan> plans_;
};

// The part of a pass that a phase of a layer belongs to.
double PassSeconds::*seconds_of(Phase phase) {
  switch (phase) {
    case Phase::Prepare:
    case Phase::Forward:
    case Phase::Statistics:
    case Phase::Activate:
    case Phase::Loss:
      return &PassSeconds::forward_s;
    case Phase::BackwardWeights:
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
    const auto transfer = static_cast<std::size_t>(priced.action.transfer);
    for (const Parcel& parcel : step.transfers[transfer].parcels) {
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
                        {"idle devices", time.idle_s},
                        {"redundant work", time.redundant_s}};
  const Part* most =
      std::max_element(std::begin(parts), std::end(parts), [](const Part& a, const Part& b) {
        return a.seconds < b.seconds;
      });
  constexpr double kLittle = 0.1;
  return most->seconds < kLittle * time.step_s() ? "computing" : most->name;
}

std::vector<std::pair<std::string, Partition>> simple_baselines(const Network& network,
                                                                const ClusterProfile& cluster,
                                                                const SearchOptions& options,
                                                                const Partition& like) {
  const auto shorthand = [&](const Shorthand& rule) {
    return shorthand_partition(network, options, like, rule);
  };
  const std::pair<const char*, std::optional<Partition>> all[] = {
      {"no joins", without_fusion(network, cluster, options)},
      {"one group", single_group(network, cluster, options, like)},
      {"grid", shorthand(plain_grid(cluster.size()))},
      {"images", shorthand(data_parallel(cluster.size()))}};
  std::vector<std::pair<std::string, Partition>> baselines;
  for (const auto& [name, partition] : all) {
    if (partition) {
      baselines.emplace_back(name, *partition);
    }
  }
  return baselines;
}

std::vector<ExplainedPlan> compare_with_baselines(const Network& network,
                                                  const ClusterProfile& cluster,
                                                  const SearchOptions& options,
                                                  const Partition& partition) {
  return Comparison(network, cluster, options, partition).run();
}

ClusterProfile cluster_of_size(const Network& network, const ClusterProfile& cluster, int devices) {
  if (devices <= cluster.size()) {
    return first_devices(cluster, devices);
  }
  ClusterProfile larger = cluster;
  while (larger.size() < devices) {
    larger = with_one_more(network, larger);
  }
  return larger;
}

std::vector<ExplainedCount> compare_device_counts(const Network& network,
                                                  const ClusterProfile& cluster,
                                                  const SearchOptions& options) {
  constexpr int kFew = 8;
  constexpr int kMore = 2;
  SearchOptions quick = options;
  quick.candidates = 1;
  std::vector<ExplainedCount> counts;
  for (int devices = 1; devices <= cluster.size() + kMore; ++devices) {
    const bool power_of_two = (devices & (devices - 1)) == 0;
    if (devices > kFew && devices < cluster.size() && !power_of_two) {
      continue;
    }
    if (options.reader >= devices) {  // it would not be there
      continue;
    }
    const ClusterProfile part = cluster_of_size(network, cluster, devices);
    const SearchResult result = search_partition(network, part, quick);
    ExplainedCount count{devices, std::nullopt};
    if (!result.candidates.empty()) {
      count.best = explained(network, part, quick, result.candidates.front().partition);
    }
    counts.push_back(std::move(count));
  }
  return counts;
}

}  // namespace tessera::partitioner
