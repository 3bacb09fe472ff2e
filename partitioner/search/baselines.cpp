#include "partitioner/search/baselines.h"

#include <optional>
#include <tuple>

#include "partitioner/base/errors.h"
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
  std::tie(shorthand.grid_rows, shorthand.grid_cols) = squarest_grid(ranks);
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

}  // namespace tessera::partitioner
