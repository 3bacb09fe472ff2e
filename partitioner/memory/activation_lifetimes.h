// When each thing of an activation arena is needed, before any has a place.

#pragma once

#include <vector>

#include "partitioner/memory/activation_arena.h"

namespace tessera::partitioner {

// For each rank, by map_slot: whether cells of that map travel to or from it, or between two of its
// buffers.
[[nodiscard]] std::vector<std::vector<bool>> exchanged_maps(const Plan& plan);

// Slots with times and bytes, all at offset 0. `exchanged` is the rank's.
[[nodiscard]] ActivationArena activation_lifetimes(const Network& network,
                                                   const Plan& plan,
                                                   int rank,
                                                   const ArenaOptions& options,
                                                   const std::vector<bool>& exchanged);

}  // namespace tessera::partitioner
