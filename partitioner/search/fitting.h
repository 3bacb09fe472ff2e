// For a network that fits into the memory of no partition that a search found: how much is missing
// where, and what would make it fit, found by trying.

#pragma once

#include <optional>
#include <string>

#include "partitioner/search/search.h"

namespace tessera::partitioner {

// What a device has too little.
struct Shortage {
  int rank = 0;
  Index needed_bytes = 0;
  Index limit_bytes = 0;

  [[nodiscard]] Index missing_bytes() const { return needed_bytes - limit_bytes; }
};

// The shortage of the device that lacks the largest share of its limit.
[[nodiscard]] Shortage largest_shortage(const std::vector<MemoryUse>& memory,
                                        const std::vector<Index>& limits);

// Each by itself makes the network fit; empty where what was tried does not.
struct Remedies {
  std::optional<Index> passes;  // of a step, of fewer images each
  std::optional<int> devices;   // one more than there are, of the slowest kind
};
[[nodiscard]] Remedies find_remedies(const Network& network,
                                     const ClusterProfile& cluster,
                                     const SearchOptions& options);

// The cluster with one more device, like its slowest.
[[nodiscard]] ClusterProfile with_one_more(const Network& network, const ClusterProfile& cluster);

// One sentence about the smallest partition of a search that found none that fits.
[[nodiscard]] std::string why_nothing_fits(const Network& network,
                                           const ClusterProfile& cluster,
                                           const SearchOptions& options,
                                           const Candidate& smallest);

}  // namespace tessera::partitioner
