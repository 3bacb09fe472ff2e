#include "partitioner/text/alternatives.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <utility>

#include "partitioner/balance/balance.h"
#include "partitioner/base/errors.h"
#include "partitioner/search/device_sets.h"
#include "partitioner/search/search_space.h"
#include "partitioner/text/alternatives_why.h"
#include "partitioner/text/device_names.h"
#include "partitioner/text/plan_words.h"

namespace tessera::partitioner {

namespace {

constexpr std::size_t kMostSets = 16;  // of devices, that are searched
constexpr Index kLocalSteps = 8;       // of replicas, from one average to the next

// All layers in one group, images shared out by the weights of devices; none: evenly.
std::optional<Partition> shared_images(const Network& network,
                                       Index batch,
                                       const Partition& like,
                                       std::vector<int> devices,
                                       std::vector<double> weights) {
  Arrangement arrangement;
  arrangement.images = std::ssize(devices);
  arrangement.ranks = std::move(devices);
  arrangement.weights = std::move(weights);
  const auto group = arranged_group(network, 0, network.size() - 1, arrangement, batch);
  if (!group) {
    return std::nullopt;
  }
  Partition partition = like;
  partition.groups = {*group};
  partition.replicas = {};
  return partition;
}

// The same grids of tiles, with boundaries by the weights of ranks; none: evenly. Nothing where
// there are no tiles. Of a single replica.
std::optional<Partition> cut_tiles_of_one(const Network& network,
                                          Index batch,
                                          const Partition& like,
                                          const std::vector<double>& weights) {
  Partition partition = like;
  bool any = false;
  for (Group& group : partition.groups) {
    Arrangement arrangement = arrangement_of(group);
    if (arrangement.rows * arrangement.cols == 1) {
      continue;
    }
    for (const int rank : weights.empty() ? std::vector<int>{} : group.ranks) {
      arrangement.weights.push_back(weights[static_cast<std::size_t>(rank)]);
    }
    auto cut = arranged_group(network, group.first, group.last, arrangement, batch);
    if (!cut) {
      return std::nullopt;
    }
    cut->reduce_to_owner = group.reduce_to_owner;
    cut->recompute = group.recompute;
    group = std::move(*cut);
    any = true;
  }
  return any ? std::optional(std::move(partition)) : std::nullopt;
}

// The same of any partition: replicas are cut alike, by the mean weight of the ranks that stand for
// each other.
std::optional<Partition> cut_tiles(const Network& network,
                                   Index batch,
                                   const Partition& like,
                                   const std::vector<double>& weights) {
  const Replicas& replicas = like.replicas;
  if (replicas.count == 1) {
    return cut_tiles_of_one(network, batch, like, weights);
  }
  const Partition one = one_replica(like);
  std::vector<double> of_one(weights.empty() ? 0 : static_cast<std::size_t>(one.ranks));
  for (std::size_t rank = 0; rank < weights.size(); ++rank) {
    of_one[rank % of_one.size()] += weights[rank] / replicas.count;
  }
  const Index share = batch / replicas.count;
  const auto cut = cut_tiles_of_one(network, share, one, of_one);
  return cut ? std::optional(replicated(*cut, replicas, share)) : std::nullopt;
}

class AlternativesSearch {
 public:
  AlternativesSearch(const Network& network,
                     const ClusterProfile& cluster,
                     const SearchOptions& options,
                     const Partition& chosen,
                     const std::optional<DataLocation>& data)
      : network_(network),
        cluster_(cluster),
        options_(options),
        chosen_(chosen),
        data_(data),
        speeds_(device_speeds(network, options.kernels, cluster)) {
    if (data_) {
      samples_ = std::accumulate(data_->samples.begin(), data_->samples.end(), Index{0});
    }
  }

  Alternatives run() {
    add(kChosenName, chosen_);
    if (cluster_.size() > 1) {
      add_fewer_devices();
      add_tiles();
      add_shared_images();
      add_replicas();
    }
    if (data_) {
      add_data();
    }
    share_images();
    result_.why = why_it_wins(result_, std::ssize(busy_ranks(chosen_)), cluster_.size());
    return std::move(result_);
  }

 private:
  [[nodiscard]] Index step_images() const { return options_.batch * options_.cost.passes; }
  [[nodiscard]] double epoch_steps() const {
    return static_cast<double>(samples_) / static_cast<double>(step_images());
  }
  // What is compared, where it is known: what the objective wants little of; of time epochs where
  // samples are known, else steps.
  [[nodiscard]] std::optional<double> value_of(const Alternative& of) const {
    if (is_of_energy(result_.compared)) {
      return of.step_s && of.energy
                 ? std::optional(objective_value(result_.compared, *of.step_s, of.energy->energy_j))
                 : std::nullopt;
    }
    return of.epoch_s ? of.epoch_s : of.step_s;
  }

  void add(Alternative alternative) {
    if (result_.all.empty()) {
      const bool knows_energy = is_of_energy(options_.objective) && alternative.energy;
      result_.compared = knows_energy ? options_.objective : Objective::Time;
    }
    const auto chosen = value_of(result_.all.empty() ? alternative : result_.all.front());
    if (const auto value = value_of(alternative); value && *chosen > 0) {
      alternative.ratio = *value / *chosen;
    }
    result_.all.push_back(std::move(alternative));
  }

  // One that is there already is not added again.
  void add(const char* name, const Partition& partition) {
    if (std::find(partitions_.begin(), partitions_.end(), partition) != partitions_.end()) {
      return;
    }
    partitions_.push_back(partition);
    const ExplainedPlan plan = explained(network_, cluster_, options_, partition);
    const std::vector<int> busy = busy_ranks(partition);
    Alternative alternative{.name = name,
                            .devices = std::ssize(busy) < cluster_.size()
                                           ? listed_devices(device_names(cluster_), busy)
                                           : "",
                            .step_s = plan.time.step_s(),
                            .epoch_s = std::nullopt,
                            .energy = plan.energy,
                            .most_bytes = plan.most_bytes,
                            .fits = plan.fits,
                            .exact = is_exact(partition),
                            .time = plan.time};
    if (data_) {
      alternative.epoch_s = epoch_steps() * *alternative.step_s;
    }
    add(std::move(alternative));
  }

  [[nodiscard]] bool is_exact(const Partition& partition) const {
    return inexact_words(network_, partition.replicas, partition.gradient_reduction.compression)
        .empty();
  }

  void add(const char* name, const std::optional<Partition>& partition) {
    if (partition) {
      add(name, *partition);
    }
  }

  // The fastest set of devices that are not all, and the set that takes the least energy.
  void add_fewer_devices() {
    SearchOptions quick = options_;
    quick.candidates = 1;
    quick.objective = Objective::Time;
    const auto find = [&](const std::vector<int>& devices) -> std::optional<Candidate> {
      SearchResult found = search_devices(network_, cluster_, quick, devices);
      return found.candidates.empty() ? std::nullopt
                                      : std::optional(std::move(found.candidates.front()));
    };
    DeviceSetOptions sets;
    sets.most = kMostSets;
    sets.needed = options_.reader.single_rank();
    const DeviceSetSearch found = search_device_sets(cluster_, sets, one_by_one(find));
    const Candidate* fastest = nullptr;
    const Candidate* frugal = nullptr;
    for (const DeviceSet& set : found.sets) {
      if (!set.found) {
        continue;
      }
      const Candidate& candidate = *set.found;
      if (fastest == nullptr && std::ssize(set.devices) < cluster_.size()) {
        fastest = &candidate;
      }
      if (candidate.energy &&
          (frugal == nullptr || candidate.energy->energy_j < frugal->energy->energy_j)) {
        frugal = &candidate;
      }
    }
    if (fastest != nullptr) {
      add("fewer devices", fastest->partition);
    }
    if (frugal != nullptr) {
      add("least energy", frugal->partition);
    }
  }

  [[nodiscard]] std::vector<int> all_devices() const {
    std::vector<int> all(cluster_.devices.size());
    std::iota(all.begin(), all.end(), 0);
    return all;
  }

  [[nodiscard]] bool has_equal_devices() const {
    const auto [slowest, fastest] = std::minmax_element(speeds_.begin(), speeds_.end());
    constexpr double kUnequal = 1.02;
    return *fastest <= *slowest * kUnequal;
  }

  void add_tiles() {
    add("even tiles", cut_tiles(network_, options_.batch, chosen_, {}));
    if (!has_equal_devices()) {
      add("tiles by speed", cut_tiles(network_, options_.batch, chosen_, speeds_));
    }
  }

  void add_shared_images() {
    const std::vector<int> all = all_devices();
    add("images, even", shared_images(network_, options_.batch, chosen_, all, {}));
    if (!has_equal_devices()) {
      add("images by speed", shared_images(network_, options_.batch, chosen_, all, speeds_));
    }
  }

  // Each device trains by itself on its share of the images, and what they have learnt is averaged
  // now and then.
  void add_replicas() {
    const Replicas replicas{cluster_.size(), {SyncMode::Local, kLocalSteps}};
    if (chosen_.replicas.independent() || options_.batch % replicas.count != 0) {
      return;
    }
    Partition one = single_tile(network_);
    one.kernels = chosen_.kernels;
    one.gradient_reduction = chosen_.gradient_reduction;
    const Partition all = replicated(one, replicas, options_.batch / replicas.count);
    add(fmt::format("replicas, --sync {}", to_text(replicas.sync)).c_str(), all);
    if (!result_.all.back().fits && partitions_.back() == all) {
      result_.all.pop_back();
    }
  }

  // Each device trains on the samples that lie on it, and gradients are reduced once in a step as
  // when images are shared out.
  void add_data() {
    BalanceProblem problem = balance_problem(cluster_);
    problem.sample_bytes = data_->sample_bytes;
    problem.epochs = data_->epochs;
    const std::vector<double> seconds =
        seconds_per_sample(network_, chosen_.kernels, cluster_, options_.batch, options_.cost);
    for (std::size_t i = 0; i < problem.size(); ++i) {
      problem.devices[i].samples = data_->samples[i];
      problem.devices[i].seconds_per_sample = seconds[i];
    }
    const double reductions_s = epoch_steps() * reduction_seconds();
    const auto of_epoch = [&](const Balance& balance) {
      return balance.total_s / data_->epochs + reductions_s;
    };
    add({.name = "data as it lies", .epoch_s = of_epoch(balance_of(problem, {}))});
    add({.name = "data moved", .epoch_s = of_epoch(balance_exactly(problem))});
  }

  // Seconds of reducing gradients once between all devices, whether there are images for all of
  // them or not.
  [[nodiscard]] double reduction_seconds() const {
    SearchOptions options = options_;
    options.batch = std::max<Index>(options.batch, cluster_.size());
    const auto partition =
        shared_images(network_, options.batch, chosen_, all_devices(), {}).value();
    return time_shares(network_, cluster_, options, partition).gradients_s;
  }

  void share_images() {
    const std::vector<int> order = by_speed(speeds_);
    constexpr int kMost = 16;
    for (int count = 1; count <= std::min(kMost, cluster_.size()); ++count) {
      const std::vector<int> devices(order.begin(), order.begin() + count);
      std::vector<double> weights;
      for (const int device : has_equal_devices() ? std::vector<int>{} : devices) {
        weights.push_back(speeds_[static_cast<std::size_t>(device)]);
      }
      const auto partition =
          shared_images(network_, options_.batch, chosen_, devices, std::move(weights));
      if (!partition) {
        return;
      }
      const TimeShares time = shares_without_others(*partition);
      result_.shared.push_back({count, time.step_s(), what_limits(time)});
    }
  }

  // As if devices without work were not there: they are not idle.
  [[nodiscard]] TimeShares shares_without_others(const Partition& partition) const {
    std::vector<int> devices = busy_ranks(partition);
    const auto reader = partition.reader.single_rank();
    if (reader && !std::binary_search(devices.begin(), devices.end(), *reader)) {
      devices.insert(std::upper_bound(devices.begin(), devices.end(), *reader), *reader);
    }
    return time_shares(
        network_, devices_of(cluster_, devices), options_, of_ranks(partition, devices));
  }

  const Network& network_;
  const ClusterProfile& cluster_;
  const SearchOptions& options_;
  const Partition& chosen_;
  const std::optional<DataLocation>& data_;
  std::vector<double> speeds_;
  Index samples_ = 0;
  std::vector<Partition> partitions_;  // that were compared
  Alternatives result_;
};

}  // namespace

Alternatives compare_alternatives(const Network& network,
                                  const ClusterProfile& cluster,
                                  const SearchOptions& options,
                                  const Partition& chosen,
                                  const std::optional<DataLocation>& data) {
  expects(!data || data->samples.size() == cluster.devices.size(), "samples of each device");
  return AlternativesSearch(network, cluster, options, chosen, data).run();
}

}  // namespace tessera::partitioner
