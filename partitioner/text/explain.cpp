#include "partitioner/text/explain.h"

#include "partitioner/search/baselines.h"
#include "partitioner/search/fitting.h"

namespace tessera::partitioner {

namespace {

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
