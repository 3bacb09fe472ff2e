// How many threads operators use on this rank, and how these share loops. Where it is one thread,
// none of this calls OpenMP, which tells the system of the end of each loop even then.

#pragma once

#include <omp.h>

#include "partitioner/base/region.h"

namespace tessera::engine {

// The most that a rank may have: 16 for each processor of this machine, or 64. OpenMP would take
// any number, and end the program where the system does not start as many.
[[nodiscard]] int most_threads();

// Throws InputError where the environment asks for more with OMP_NUM_THREADS, or for no number.
void expect_usable_threads();

// Throws InputError for more than most_threads().
void set_threads(int count);

// Where OMP_NUM_THREADS does not say: shares the processors of this machine out among its ranks, at
// least one thread each.
void share_processors(int ranks_on_this_machine);
[[nodiscard]] int threads();

// In how many parts, from `least` to `most`, to cut each of `jobs` so that threads have as much to
// do.
[[nodiscard]] Index parts_for_threads(Index least, Index most, Index jobs);

// Calls visit(i) for each i, in parallel, neighbours by the same thread.
template <class Visit>
void parallel_for(const Range& all, Visit visit) {
  if (threads() == 1) {
    for (Index i = all.begin; i < all.end; ++i) {
      visit(i);
    }
    return;
  }
#pragma omp parallel for schedule(static)
  for (Index i = all.begin; i < all.end; ++i) {
    visit(i);
  }
}

// Calls visit(i, j) for each i and each j, in parallel, neighbours by the same thread.
template <class Visit>
void parallel_for(const Range& outer, const Range& inner, Visit visit) {
  if (threads() == 1) {
    for (Index i = outer.begin; i < outer.end; ++i) {
      for (Index j = inner.begin; j < inner.end; ++j) {
        visit(i, j);
      }
    }
    return;
  }
#pragma omp parallel for collapse(2) schedule(static)
  for (Index i = outer.begin; i < outer.end; ++i) {
    for (Index j = inner.begin; j < inner.end; ++j) {
      visit(i, j);
    }
  }
}

// The same where threads should be at the same i at about the same time: they take turns.
template <class Visit>
void parallel_for_in_turn(const Range& outer, const Range& inner, Visit visit) {
  if (threads() == 1) {
    parallel_for(outer, inner, visit);
    return;
  }
#pragma omp parallel for collapse(2) schedule(static, 1)
  for (Index i = outer.begin; i < outer.end; ++i) {
    for (Index j = inner.begin; j < inner.end; ++j) {
      visit(i, j);
    }
  }
}

// Calls work() by all threads, as a team that shares the loops in it.
template <class Work>
void run_team(Work work) {
  if (threads() == 1) {
    work();
    return;
  }
#pragma omp parallel
  work();
}

// The end of a loop that a team shared: waits for all of it. Called by all its threads.
inline void wait_for_team() {
  if (omp_get_num_threads() > 1) {
#pragma omp barrier
  }
}

}  // namespace tessera::engine
