// How many threads operators use on this rank.

#pragma once

namespace engine {

void set_threads(int count);

// Where OMP_NUM_THREADS does not say: shares the processors of this machine out among its ranks, at
// least one thread each.
void share_processors(int ranks_on_this_machine);
[[nodiscard]] int threads();

}  // namespace engine
