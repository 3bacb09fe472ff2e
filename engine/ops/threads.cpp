#include "engine/ops/threads.h"

#include <algorithm>
#include <cstdlib>

#include <omp.h>

namespace engine {

void set_threads(int count) {
  omp_set_num_threads(count);
}

void share_processors(int ranks_on_this_machine) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): called once, at the start
  if (std::getenv("OMP_NUM_THREADS") == nullptr) {
    omp_set_num_threads(std::max(1, omp_get_num_procs() / ranks_on_this_machine));
  }
}

int threads() {
  return omp_get_max_threads();
}

Index parts_for_threads(Index least, Index most, Index jobs) {
  constexpr Index kManyJobs = 8;  // for each thread: one more or less does not matter
  Index parts = least;
  while (parts < most && parts * jobs < kManyJobs * threads() && parts * jobs % threads() != 0) {
    ++parts;
  }
  return parts;
}

}  // namespace engine
