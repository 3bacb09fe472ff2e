// Shuffling: the order in which an epoch visits a data set, a permutation drawn from (seed, epoch),
// the same on every machine.
//
// It is computed item by item and nothing is stored: a Feistel network, whose rounds are
// random_bits, permutes the smallest power of four that holds the data set, and values outside are
// permuted again until one lies inside (Black and Rogaway, "Ciphers with arbitrary finite domains",
// CT-RSA 2002; at most four tries on average).

#pragma once

#include <cstdint>

#include "partitioner/base/region.h"

namespace tessera::engine {

// The item at `place` of the epoch, both from 0 to size - 1.
[[nodiscard]] Index shuffled_item(Index size, std::uint64_t seed, Index epoch, Index place);

}  // namespace tessera::engine
