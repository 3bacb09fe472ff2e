// For a search: the fastest partitions under limits of memory, and the one that takes the least.
//
// What groups add to the device that uses the most has a price in seconds, see search.h.

#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "partitioner/search/partition_figures.h"
#include "partitioner/search/partition_search.h"
#include "partitioner/search/shortlist.h"

namespace tessera::partitioner {

class MemorySearch {
 public:
  // `fastest_s`: of a step, whatever memory it takes. All must outlive it.
  MemorySearch(const Network& network,
               const ClusterProfile& cluster,
               const SearchOptions& options,
               PartitionFigures& figures,
               Shortlists& shortlists,
               double fastest_s);

  // Partitions that fit, the fastest first; may be none. `found` fit already.
  [[nodiscard]] std::vector<Partition> under_limits(std::vector<Partition> found);

  // The least that was found. It starts from `start`, so the limits have no part in it, other than
  // by what they are to each other.
  [[nodiscard]] const Partition& smallest(const Partition& start);

  // The partitions that fit of all that turn up in the search for the smallest, the fastest first.
  [[nodiscard]] std::vector<Partition> small_ones(const Partition& start);

  // Searches under limits are not exact: whether the problem is so small that there is time to look
  // under lower limits as well.
  [[nodiscard]] bool has_time_for_more();

  // The search of groups of one layer each, where under_limits() needed it; null elsewhere.
  [[nodiscard]] PartitionSearch* single_layers() { return single_layers_.get(); }

  // Adds what it took to the effort of a search.
  void add_to(SearchEffort& effort) const;

 private:
  [[nodiscard]] PartitionSearch& by_limits();
  [[nodiscard]] std::vector<Partition> under_limits_within(std::vector<Partition> found);
  [[nodiscard]] std::vector<Partition> cheapest(PartitionSearch& search, const MemoryPrice& price);
  [[nodiscard]] std::vector<Partition> fitting_at(PartitionSearch& search,
                                                  const MemoryPrice& price);
  [[nodiscard]] std::vector<Partition> best_of(PartitionSearch& search);
  [[nodiscard]] std::vector<Partition> at_lowest_price(PartitionSearch& search,
                                                       double most,
                                                       std::vector<Partition> best);
  [[nodiscard]] Partition keeping_more(const Partition& partition);
  void keep_more(std::vector<Partition>& partitions, std::size_t most);
  [[nodiscard]] std::size_t few_checks() const;
  void add_all_faster(std::vector<Partition>& best);
  [[nodiscard]] Partition smallest_by(PartitionSearch& search, const Partition& start);
  [[nodiscard]] bool is_faster(const std::vector<Partition>& found,
                               const std::vector<Partition>& best);

  const Network& network_;
  const ClusterProfile& cluster_;
  const SearchOptions& options_;
  SearchOptions single_layer_options_;
  PartitionFigures& figures_;
  Shortlists& shortlists_;
  double fastest_s_;
  double factor_ = 1.1;  // of it: which choices are looked at, where not all are
  std::unique_ptr<PartitionSearch> by_limits_;
  std::unique_ptr<PartitionSearch> single_layers_;
  std::optional<Partition> smallest_;
  std::vector<Partition> small_ones_;  // that were found on the way to it
  std::optional<bool> complete_;       // whether all that is faster than the best was looked at
};

}  // namespace tessera::partitioner
