// The last word of a search: what it finds beside simple baselines, with kernels whose scratch
// memory is limited, and for replicas.

#pragma once

#include <string>
#include <utility>

#include "partitioner/base/errors.h"
#include "partitioner/search/search.h"

namespace tessera::partitioner {

// No partition was found that fits into the memory of the devices.
class NothingFits : public InputError {
 public:
  // `smallest` takes the least of those that were found, of one replica; `why` is a sentence.
  NothingFits(const std::string& model, std::string why, Partition smallest)
      : InputError(model, 0, why), why_(std::move(why)), smallest_(std::move(smallest)) {}

  [[nodiscard]] const std::string& why() const { return why_; }
  [[nodiscard]] const Partition& smallest() const { return smallest_; }

 private:
  std::string why_;
  Partition smallest_;
};

// The best of what a search finds for the cluster and of what it is compared with, as the only
// candidate of the result; no candidate where nothing fits. Throws InputError where the problem is
// too large to search, or where the objective needs powers that are unknown.
[[nodiscard]] SearchResult search_with_baselines(const Network& network,
                                                 const ClusterProfile& cluster,
                                                 SearchOptions options);

// The best partition for so many replicas, each on an equal share of the devices and of
// `options.batch` images. Throws NothingFits, which calls the network `model`, and InputError where
// replicas cannot have equal shares.
[[nodiscard]] Partition best_partition(const Network& network,
                                       const ClusterProfile& cluster,
                                       const SearchOptions& options,
                                       const Replicas& replicas,
                                       const std::string& model);

// The same options, to predict a step of a partition that is given.
[[nodiscard]] SearchOptions options_for(SearchOptions options, const Partition& partition);

}  // namespace tessera::partitioner
