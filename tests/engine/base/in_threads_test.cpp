#include "engine/base/in_threads.h"

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

namespace tessera::engine {

TEST_CASE("each number is worked on once, however many a thread takes at a time") {
  for (const Index count : {0, 1, 7, 64, 65, 1000}) {
    for (const Index at_once : {1, 3, 64}) {
      CAPTURE(count);
      CAPTURE(at_once);
      std::vector<std::atomic<int>> times(static_cast<std::size_t>(count));
      for_each_in_threads(
          count, [&](Index i) { ++times[static_cast<std::size_t>(i)]; }, at_once);
      for (const std::atomic<int>& of_number : times) {
        CHECK(of_number == 1);
      }
    }
  }
}

TEST_CASE(
    "what one of the threads throws reaches who asked, and numbers beyond it may be left out") {
  std::atomic<Index> done{0};
  const auto work = [&](Index i) {
    if (i == 5) {
      throw std::runtime_error("the sixth");
    }
    ++done;
  };
  CHECK_THROWS_WITH(for_each_in_threads(10000, work, 1), "the sixth");
  CHECK(done < 10000);
}

TEST_CASE("with one thread at most the caller does all of the work") {
  const std::thread::id caller = std::this_thread::get_id();
  bool alone = true;
  for_each_in_threads(
      1000, [&](Index /*i*/) { alone = alone && std::this_thread::get_id() == caller; }, 1, 1);
  CHECK(alone);
}

}  // namespace tessera::engine
