#include "engine/run_log/background_work.h"

#include <future>
#include <stdexcept>
#include <thread>

#include <doctest/doctest.h>

namespace {

using tessera::engine::BackgroundWork;

TEST_CASE("work goes on in the background until it is waited for") {
  BackgroundWork work;
  CHECK(work.is_done());
  std::promise<void> may_end;
  bool ended = false;
  work.start([&] {
    may_end.get_future().wait();
    ended = true;
  });
  CHECK(!work.is_done());
  may_end.set_value();
  work.finish();
  CHECK(ended);
  CHECK(work.is_done());
}

TEST_CASE("what work throws comes out once, where it is asked for") {
  BackgroundWork work;
  work.start([] { throw std::runtime_error("full"); });
  CHECK_THROWS_WITH(work.finish(), "full");
  CHECK(work.is_done());
  work.start([] { throw std::runtime_error("full"); });
  CHECK_THROWS_WITH(
      [&] {
        while (!work.is_done()) {
          std::this_thread::yield();
        }
      }(),
      "full");
  work.start([] { throw std::runtime_error("forgotten"); });
  work.abandon();
  CHECK(work.is_done());
}

TEST_CASE("the end of background work waits for it") {
  bool ended = false;
  std::promise<void> may_end;
  std::thread other([&] { may_end.set_value(); });
  {
    BackgroundWork work;
    work.start([&] {
      may_end.get_future().wait();
      ended = true;
    });
  }
  CHECK(ended);
  other.join();
}

}  // namespace
