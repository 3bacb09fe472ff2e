#include "engine/run_log/loss_trend.h"

#include <initializer_list>
#include <optional>

#include <doctest/doctest.h>

namespace tessera::engine {

namespace {

LossTrend trend_of(double guess,
                   std::initializer_list<double> losses,
                   std::optional<double> begun_with = {}) {
  LossTrend trend(guess);
  if (begun_with) {
    trend.begin_with(*begun_with);
  }
  for (const double loss : losses) {
    trend.add(loss);
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
  CHECK(trend_of(2.3, {60, 60, 60}, 2.4).risen());
  CHECK_FALSE(trend_of(2.3, {1.1, 1.0}, 2.4).risen());
}

TEST_CASE("a resumed detector has not diverged, whose loss is above guessing and as it was") {
  CHECK_FALSE(trend_of(0.7, {9, 8, 9}, 40).risen());
  CHECK_FALSE(trend_of(0.7, {9, 8, 9}).risen());  // nothing is known of its first step
  CHECK(trend_of(0.7, {90, 95, 99}, 40).risen());
}

}  // namespace tessera::engine
