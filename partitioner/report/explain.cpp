#include "partitioner/report/explain.h"

#include "partitioner/base/errors.h"
#include "partitioner/search/fitting.h"
#include "partitioner/search/search_space.h"

namespace tessera::partitioner {

namespace {

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
      best->replicas = {};
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

class BaselineComparison {
 public:
  BaselineComparison(const Network& network,
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

}  // namespace

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
  return BaselineComparison(network, cluster, options, partition).run();
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
    if (!options.reader.is_among(devices)) {  // it would not be there
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
