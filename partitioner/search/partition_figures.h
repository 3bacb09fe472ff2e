// For a search: what it asks of the same partitions again and again, worked out once for each.

#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "partitioner/search/search.h"

namespace tessera::partitioner {

class PartitionFigures {
 public:
  // All must outlive it.
  PartitionFigures(const Network& network,
                   const ClusterProfile& cluster,
                   const SearchOptions& options);

  // The largest share of its limit that a rank takes; above 1 the partition does not fit.
  [[nodiscard]] double load_of(const Partition& partition);
  [[nodiscard]] bool fits(const Partition& partition);

  // By the cost model, without what is the same for all: the gradient reduction of the loss.
  [[nodiscard]] double seconds_of(const Partition& partition);

  // Sorts by time and removes doubles; of those that take the same time, in their own order.
  void sort_by_time(std::vector<Partition>& partitions);

  // The index of the groups that recompute their maps, those that take the longest first.
  [[nodiscard]] std::vector<std::size_t> slow_to_recompute(const Partition& partition) const;

  // What the limits leave to the network, [rank] bytes, if each is `share` of what it is: without
  // the program, data sets, and what a single reader decodes.
  [[nodiscard]] std::vector<Index> limits_of_network(double share = 1) const;

 private:
  struct Known {
    std::optional<double> load;
    std::optional<double> seconds;
  };
  [[nodiscard]] Known& known(const Partition& partition);
  [[nodiscard]] Index taken_anyway(std::size_t rank) const;

  const Network& network_;
  const ClusterProfile& cluster_;
  const SearchOptions& options_;
  std::vector<Index> limits_;           // [rank]
  std::map<std::string, Known> known_;  // by text of the partition
};

}  // namespace tessera::partitioner
