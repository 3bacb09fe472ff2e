// When each thing of an activation arena is needed, before any has a place.

#pragma once

#include <vector>

#include "partitioner/memory/activation_arena.h"

namespace tessera::partitioner {

// Slots with times and bytes, all at offset 0.
[[nodiscard]] ActivationArena activation_lifetimes(const Network& network,
                                                   const Plan& plan,
                                                   int rank,
                                                   const ArenaOptions& options);

}  // namespace tessera::partitioner
