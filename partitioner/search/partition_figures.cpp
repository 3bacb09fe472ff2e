#include "partitioner/search/partition_figures.h"

#include <algorithm>

namespace tessera::partitioner {

PartitionFigures::PartitionFigures(const Network& network,
                                   const ClusterProfile& cluster,
                                   const SearchOptions& options)
    : network_(network),
      cluster_(cluster),
      options_(options),
      limits_(memory_limits(cluster, options)) {}

PartitionFigures::Known& PartitionFigures::known(const Partition& partition) {
  return known_[to_text(partition)];
}

double PartitionFigures::load_of(const Partition& partition) {
  std::optional<double>& load = known(partition).load;
  if (!load) {
    const std::vector<MemoryUse> uses = searched_memory(network_, cluster_, options_, partition);
    load = 0;
    for (std::size_t rank = 0; rank < uses.size(); ++rank) {
      const auto limit = static_cast<double>(limits_[rank]);
      load = std::max(*load, static_cast<double>(uses[rank].total()) / limit);
    }
  }
  return *load;
}

bool PartitionFigures::fits(const Partition& partition) {
  return !options_.counts_memory || load_of(partition) <= 1;
}

double PartitionFigures::seconds_of(const Partition& partition) {
  std::optional<double>& seconds = known(partition).seconds;
  if (!seconds) {
    CostOptions cost = options_.cost;
    cost.has_loss = false;
    seconds = step_cost(network_, partition, options_.batch, cluster_, cost).total();
  }
  return *seconds;
}

void PartitionFigures::sort_by_time(std::vector<Partition>& partitions) {
  std::stable_sort(partitions.begin(), partitions.end(), [this](const auto& a, const auto& b) {
    return seconds_of(a) < seconds_of(b);
  });
  partitions.erase(std::unique(partitions.begin(), partitions.end()), partitions.end());
}

std::vector<std::size_t> PartitionFigures::slow_to_recompute(const Partition& partition) const {
  const StepCost cost = step_cost(network_, partition, options_.batch, cluster_, options_.cost);
  std::vector<std::size_t> groups;
  for (std::size_t group = 0; group < cost.groups.size(); ++group) {
    if (cost.groups[group].recompute_s > 0) {
      groups.push_back(group);
    }
  }
  std::stable_sort(groups.begin(), groups.end(), [&cost](std::size_t a, std::size_t b) {
    return cost.groups[a].recompute_s > cost.groups[b].recompute_s;
  });
  return groups;
}

// What a rank takes of its limit whatever the partition is.
Index PartitionFigures::taken_anyway(std::size_t rank) const {
  const bool reads = options_.reader.reads(static_cast<int>(rank));
  const bool alone = reads && !options_.reader.is_every_rank();
  return cluster_.devices[rank].program_bytes + (reads ? options_.memory.data_bytes : 0) +
         (alone ? options_.memory.decoding_bytes : 0) +
         (rank == 0 ? options_.memory.judging_bytes : 0);
}

std::vector<Index> PartitionFigures::limits_of_network(double share) const {
  std::vector<Index> left = limits_;
  for (std::size_t rank = 0; rank < left.size(); ++rank) {
    const auto bytes = static_cast<Index>(static_cast<double>(limits_[rank]) * share);
    left[rank] = std::max<Index>(bytes - taken_anyway(rank), 1);
  }
  return left;
}

}  // namespace tessera::partitioner
