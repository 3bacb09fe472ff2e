// Maps in one piece on rank 0, in (N, C, H, W) order: for comparing partitions and for what comes
// out of a network. Training never gathers a map. All ranks call these together.

#pragma once

#include <vector>

#include "engine/base/tensor.h"
#include "engine/comm/communicator.h"

namespace tessera::engine {

// The cells of `whole`, of which each rank sends what it owns; empty on other ranks than 0. `cells`
// has at least this rank's.
template <class T>
[[nodiscard]] std::vector<T> gather_whole(const Communicator& communicator,
                                          const Region& whole,
                                          const std::vector<Region>& owned,
                                          View<const T> cells);

// The other way: each rank gets `regions[rank]` of what rank 0 has.
template <class T>
void scatter_whole(const Communicator& communicator,
                   const Region& whole,
                   const std::vector<Region>& regions,
                   const std::vector<T>& plain,
                   View<T> cells);

}  // namespace tessera::engine
