// How much memory one group takes, as far as that is known without the others: for a search, which
// checks what it finds with planned_memory_of_ranks().

#pragma once

#include <vector>

#include "partitioner/plan/group_geometry.h"
#include "partitioner/search/search.h"

namespace tessera::partitioner {

// False only if every plan with this group takes more than its limit on some rank.
[[nodiscard]] bool may_fit(const Network& network,
                           const GroupGeometry& group,
                           const SearchOptions& options,
                           const std::vector<Index>& limits);

// Shares of a rank's limit, of the rank where they are largest.
struct GroupLoad {
  double lasting = 0;       // parameters, messages, and what is kept for the backward pass
  double fixed = 0;         // of it what is there throughout a step: all but what is kept
  double for_a_moment = 0;  // gradients of maps, what is computed again, and scratch
  // Bytes of each rank that any plan with this group takes: throughout a step, and beside that from
  // the end of the forward pass on. They add up from group to group.
  std::vector<Index> least_fixed = {};
  std::vector<Index> least_kept = {};
};
[[nodiscard]] GroupLoad group_load(const Network& network,
                                   const GroupGeometry& group,
                                   const SearchOptions& options,
                                   const std::vector<Index>& limits);

// About what each rank takes under a partition of `options.batch` images, without its whole plan:
// for many ranks. What every rank takes anyway is not counted: data, caches, the program.
[[nodiscard]] std::vector<MemoryUse> estimated_memory_of_ranks(const Network& network,
                                                               const Partition& partition,
                                                               const SearchOptions& options);

// The lasting load of a map that ranks own and others require: buffers of what they lack, and
// messages. A map that could come back from pre-activations were it not sent is kept for that
// alone.
[[nodiscard]] double exchange_load(const std::vector<Region>& owned,
                                   const std::vector<Region>& required,
                                   bool comes_from_pre_activations,
                                   const MemoryOptions& options,
                                   const std::vector<Index>& limits);

}  // namespace tessera::partitioner
