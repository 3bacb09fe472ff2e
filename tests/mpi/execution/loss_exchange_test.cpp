#include "engine/execution/loss_exchange.h"

#include <chrono>
#include <thread>

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

// Ranks without work wait there for those that have some.
TEST_CASE("waiting for the loss of another rank is time spent on exchanging") {
  using engine::Communicator;
  const Communicator world = Communicator::world();
  engine::LossExchange exchange(world);
  constexpr std::chrono::milliseconds kLate{300};
  world.barrier();
  if (world.rank() == 0) {
    std::this_thread::sleep_for(kLate);
  }
  const double before_s = world.exchange_times().statistics_s;
  exchange.set({.loss = {1.0}});
  for (int round = 0; round < 2; ++round) {
    exchange.start(round);
    exchange.finish();
  }
  CHECK(exchange.total().loss.total() == doctest::Approx(world.size()));
  if (world.rank() > 0) {  // how long it took to leave the barrier is not known
    CHECK(world.exchange_times().statistics_s - before_s > 0.1);
  }
}
