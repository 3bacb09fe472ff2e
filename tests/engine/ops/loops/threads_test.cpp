#include "engine/ops/loops/threads.h"

#include <cstdlib>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <omp.h>

#include "partitioner/base/errors.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

// As many threads as a test asks for, while it runs.
class Threads {
 public:
  explicit Threads(int count) : before_(omp_get_max_threads()) { engine::set_threads(count); }
  ~Threads() { engine::set_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

}  // namespace

TEST_CASE("threads share a loop: each number is visited once") {
  for (const int count : {1, 2, 3}) {
    const Threads threads(count);
    for (const Range& all : {Range{0, 0}, Range{0, 1}, Range{3, 10}}) {
      std::vector<int> visits(10);
      engine::parallel_for(all, [&](Index i) { ++visits[static_cast<std::size_t>(i)]; });
      for (Index i = 0; i < 10; ++i) {
        CHECK(visits[static_cast<std::size_t>(i)] == (all.begin <= i && i < all.end ? 1 : 0));
      }
    }
  }
}

TEST_CASE("threads share two nested loops: each pair is visited once") {
  constexpr Index kCols = 5;
  for (const int count : {1, 2, 3}) {
    const Threads threads(count);
    for (const Range& inner : {Range{0, 0}, Range{1, 4}}) {
      std::vector<int> visits(4 * kCols);
      std::vector<int> in_turn(4 * kCols);
      engine::parallel_for({1, 4}, inner, [&](Index i, Index j) {
        ++visits[static_cast<std::size_t>(i * kCols + j)];
      });
      engine::parallel_for_in_turn({1, 4}, inner, [&](Index i, Index j) {
        ++in_turn[static_cast<std::size_t>(i * kCols + j)];
      });
      for (Index i = 0; i < 4; ++i) {
        for (Index j = 0; j < kCols; ++j) {
          const bool inside = i >= 1 && inner.begin <= j && j < inner.end;
          CHECK(visits[static_cast<std::size_t>(i * kCols + j)] == (inside ? 1 : 0));
          CHECK(in_turn[static_cast<std::size_t>(i * kCols + j)] == (inside ? 1 : 0));
        }
      }
    }
  }
}

TEST_CASE("threads that take turns have neighbouring pairs") {
  constexpr Index kInner = 4;
  for (const int count : {1, 2, 3}) {
    const Threads threads(count);
    std::vector<int> by(3 * kInner);
    engine::parallel_for_in_turn({0, 3}, {0, kInner}, [&](Index i, Index j) {
      by[static_cast<std::size_t>(i * kInner + j)] = omp_get_thread_num();
    });
    for (std::size_t pair = 0; pair < by.size(); ++pair) {
      CHECK(by[pair] == static_cast<int>(pair) % count);
    }
  }
}

TEST_CASE("a team waits for all that its threads have to do") {
  constexpr Index kNumbers = 1000;
  for (const int count : {1, 2, 3}) {
    const Threads threads(count);
    std::vector<Index> first(kNumbers);
    std::vector<Index> second(kNumbers);
    for (int round = 0; round < 20; ++round) {
      engine::run_team([&] {
#pragma omp for schedule(static) nowait
        for (Index i = 0; i < kNumbers; ++i) {
          first[static_cast<std::size_t>(i)] = i + round;
        }
        engine::wait_for_team();
#pragma omp for schedule(static) nowait
        for (Index i = 0; i < kNumbers; ++i) {  // what another thread has written
          second[static_cast<std::size_t>(i)] = first[static_cast<std::size_t>(kNumbers - 1 - i)];
        }
        engine::wait_for_team();
      });
      Index wrong = 0;
      for (Index i = 0; i < kNumbers; ++i) {
        wrong += second[static_cast<std::size_t>(i)] != kNumbers - 1 - i + round ? 1 : 0;
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("one thread alone is no team of OpenMP's") {
  const Threads threads(1);
  engine::run_team([] {
    CHECK(omp_get_level() == 0);
    engine::wait_for_team();
  });
  engine::parallel_for({0, 1}, [](Index) { CHECK(omp_get_level() == 0); });
  engine::parallel_for({0, 1}, {0, 1}, [](Index, Index) { CHECK(omp_get_level() == 0); });
}

TEST_CASE("more threads than a machine could use are refused, and what is not a number") {
  const int before = omp_get_max_threads();
  CHECK_THROWS_AS(engine::set_threads(engine::most_threads() + 1), InputError);
  CHECK_THROWS_AS(engine::set_threads(0), InputError);
  CHECK(omp_get_max_threads() == before);
  const char* asked = std::getenv("OMP_NUM_THREADS");
  const std::string kept = asked == nullptr ? "" : asked;
  for (const char* good : {"1", " 3 ", "2,4", ""}) {
    CAPTURE(good);
    ::setenv("OMP_NUM_THREADS", good, 1);
    CHECK_NOTHROW(engine::expect_usable_threads());
  }
  for (const char* bad :
       {"0", "-2", "four", "2x", "100000", "99999999999999999999", ",2", "\x1b[2J"}) {
    CAPTURE(bad);
    ::setenv("OMP_NUM_THREADS", bad, 1);
    CHECK_THROWS_AS(engine::expect_usable_threads(), InputError);
  }
  if (asked == nullptr) {
    ::unsetenv("OMP_NUM_THREADS");
  } else {
    ::setenv("OMP_NUM_THREADS", kept.c_str(), 1);
  }
}
