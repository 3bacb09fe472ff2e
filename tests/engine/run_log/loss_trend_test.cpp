#include "engine/run_log/loss_trend.h"

#include <doctest/doctest.h>

namespace tessera::engine {

namespace {

LossTrend trend_of(double guess, std::initializer_list<double> losses, bool resumed = false) {
  LossTrend trend(guess);
  bool first = !resumed;
  for (const double loss : losses) {
    trend.add(loss, first);
    first = false;
  }
  return trend;
}

}  // namespace

TEST_CASE("a loss that ends far above its beginning and above guessing has risen") {
  const auto risen = trend_of(2.3, {2.4, 9, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60}).risen();
  REQUIRE(risen);
  CHECK(risen->from == 2.4);
  CHECK(risen->to == 60);
}

TEST_CASE("a loss that falls, that was high from the start or that rises from little has not") {
  CHECK_FALSE(trend_of(2.3, {2.4, 2.0, 1.2}).risen());
  CHECK_FALSE(trend_of(2.3, {15, 16, 14}).risen());
  CHECK_FALSE(trend_of(2.3, {0.01, 0.5, 1.5, 1.5}).risen());
  CHECK_FALSE(trend_of(2.3, {2.4, 2.0, 30, 2.0, 1.9, 1.8}).risen());  // one batch
  CHECK_FALSE(trend_of(2.3, {}).risen());
}

TEST_CASE("a resumed run that had diverged before has still") {
  CHECK(trend_of(2.3, {60, 60, 60}, true).risen());
  CHECK_FALSE(trend_of(2.3, {1.1, 1.0}, true).risen());
}

}  // namespace tessera::engine
