// Work on many things by several threads, where they take long.

#pragma once

#include <functional>

#include "partitioner/base/region.h"

namespace tessera::engine {

inline constexpr Index kMostWorkingThreads = 8;  // more only wait for disk and memory

// Calls `work` for each number from 0 to `count`, by as many threads as there are processors, up to
// `most_threads`, the calling one among them, each with so many numbers at once. What `work` throws
// is thrown on after all threads have ended; numbers that nobody had begun by then are left out.
void for_each_in_threads(Index count,
                         const std::function<void(Index)>& work,
                         Index at_once = 64,
                         Index most_threads = kMostWorkingThreads);

}  // namespace tessera::engine
