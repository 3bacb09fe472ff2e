#include "engine/base/in_threads.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace tessera::engine {

void for_each_in_threads(Index count,
                         const std::function<void(Index)>& work,
                         Index at_once,
                         Index most_threads) {
  std::atomic<Index> next{0};
  std::mutex mutex;
  std::exception_ptr problem;
  const auto run = [&] {
    try {
      for (Index begin = next.fetch_add(at_once); begin < count; begin = next.fetch_add(at_once)) {
        for (Index i = begin; i < std::min(begin + at_once, count); ++i) {
          work(i);
        }
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      problem = problem ? problem : std::current_exception();
      next = count;
    }
  };
  {
    const Index parts = (count + at_once - 1) / at_once;
    const auto processors = static_cast<Index>(std::max(1U, std::thread::hardware_concurrency()));
    std::vector<std::jthread> others(
        static_cast<std::size_t>(std::clamp<Index>(parts, 1, std::min(most_threads, processors))) -
        1);
    for (std::jthread& other : others) {
      other = std::jthread(run);
    }
    run();
  }
  if (problem) {
    std::rethrow_exception(problem);
  }
}

}  // namespace tessera::engine
