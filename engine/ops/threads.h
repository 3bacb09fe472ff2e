// How many threads operators use on this rank.

#pragma once

#include "partitioner/region.h"

namespace engine {

using partitioner::Index;

void set_threads(int count);

// Where OMP_NUM_THREADS does not say: shares the processors of this machine out among its ranks, at
// least one thread each.
void share_processors(int ranks_on_this_machine);
[[nodiscard]] int threads();

// In how many parts, from `least` to `most`, to cut each of `jobs` so that threads have as much to
// do.
[[nodiscard]] Index parts_for_threads(Index least, Index most, Index jobs);

}  // namespace engine
