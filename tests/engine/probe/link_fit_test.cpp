#include "engine/probe/link_fit.h"

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::fit_link;
using engine::TimedTransfer;

constexpr double kRounding = 1e-9;

TEST_CASE("a line through transfers is the link that they came from") {
  const auto seconds = [](double bytes) { return 2e-4 + bytes / 1.25e7; };
  const auto link = fit_link({{1e4, seconds(1e4)}, {1e5, seconds(1e5)}, {4e6, seconds(4e6)}});
  CHECK(link.latency_s == doctest::Approx(2e-4).epsilon(kRounding));
  CHECK(link.bytes_per_s == doctest::Approx(1.25e7).epsilon(kRounding));
}

TEST_CASE("an error of a hundredth of each time moves the rate by as little") {
  const auto seconds = [](double bytes) { return 2e-4 + bytes / 1.25e7; };
  const auto link = fit_link(
      {{1e3, 1.01 * seconds(1e3)}, {1e5, 0.99 * seconds(1e5)}, {4e6, 1.01 * seconds(4e6)}});
  CHECK(link.bytes_per_s == doctest::Approx(1.25e7).epsilon(0.02));
}

TEST_CASE("small messages that come much too fast do not spoil the rate") {
  const auto link = fit_link({{1e3, 1e-5}, {1e5, 8e-3}, {1e6, 8e-2}});
  CHECK(link.bytes_per_s == doctest::Approx(1.25e7).epsilon(0.02));
}

TEST_CASE("where a line has no sense the rate is that of the transfers themselves") {
  const auto expect_rate = [](const std::vector<TimedTransfer>& transfers, double rate) {
    const auto link = fit_link(transfers);
    CHECK(link.latency_s == 0);
    CHECK(link.bytes_per_s == doctest::Approx(rate).epsilon(kRounding));
  };
  expect_rate({{1000, 0.5}}, 2000);  // one size only
  expect_rate({{1000, 0.5}, {1000, 0.5}}, 2000);
  expect_rate({{0, 0.1}, {1000, 0.1}}, 10000);             // no slower with size
  expect_rate({{1000, 0.5}, {2000, 1}}, 2000);             // through 0
  const auto link = fit_link({{1000, 0.1}, {2000, 0.4}});  // would begin before 0
  CHECK(link.latency_s == 0);
  CHECK(link.bytes_per_s > 5000);
  CHECK(link.bytes_per_s < 10000);
}

}  // namespace
