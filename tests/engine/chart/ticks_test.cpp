#include "engine/chart/ticks.h"

#include <limits>
#include <vector>

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::linear_ticks;
using engine::log_ticks;
using engine::tick_text;
using engine::Ticks;
using engine::whole_ticks;

std::vector<std::string> texts(const Ticks& ticks) {
  std::vector<std::string> result;
  for (const double value : ticks.values) {
    result.push_back(tick_text(value, ticks.step));
  }
  return result;
}

TEST_CASE("ticks are multiples of 1, 2 or 5 times a power of ten, within the bounds") {
  CHECK(texts(linear_ticks(0, 1, 6)) ==
        std::vector<std::string>{"0.0", "0.2", "0.4", "0.6", "0.8", "1.0"});
  CHECK(texts(linear_ticks(3, 97, 6)) == std::vector<std::string>{"20", "40", "60", "80"});
  CHECK(texts(linear_ticks(-0.03, 0.04, 4)) ==
        std::vector<std::string>{"-0.02", "0.00", "0.02", "0.04"});
}

TEST_CASE("there are never more ticks than asked for, and two at least where there is room") {
  for (const double low : {-1234.5, -1.0, 0.0, 0.003, 7.0, 99.0}) {
    for (const double width : {1e-4, 0.3, 1.0, 9.0, 11.0, 12345.0}) {
      for (int most = 3; most < 15; ++most) {
        const Ticks ticks = linear_ticks(low, low + width, most);
        CHECK(ticks.values.size() <= static_cast<std::size_t>(most));
        CHECK(ticks.values.size() >= 1);
        CHECK(ticks.values.front() >= low - 1e-9 * width);
        CHECK(ticks.values.back() <= low + width * (1 + 1e-9));
      }
    }
  }
}

TEST_CASE("where there is no range there are no ticks") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(linear_ticks(1, 1, 5).values.empty());
  CHECK(linear_ticks(2, 1, 5).values.empty());
  CHECK(linear_ticks(nan, 1, 5).values.empty());
  CHECK(linear_ticks(0, std::numeric_limits<double>::infinity(), 5).values.empty());
  CHECK(linear_ticks(1e9, 1e9 + 1e-6, 5).values.empty());
  CHECK(log_ticks(0, 1).values.empty());
  CHECK(log_ticks(-1, 1).values.empty());
}

TEST_CASE("ticks of steps are integers") {
  CHECK(texts(whole_ticks(1, 3, 7)) == std::vector<std::string>{"1", "2", "3"});
  CHECK(texts(whole_ticks(0.5, 1.5, 7)) == std::vector<std::string>{"1"});
}

TEST_CASE("logarithmic ticks are powers of ten, with 2 and 5 times those over few decades") {
  CHECK(texts(log_ticks(0.1, 10)) ==
        std::vector<std::string>{"0.1", "0.2", "0.5", "1", "2", "5", "10"});
  CHECK(texts(log_ticks(1e-4, 1)) ==
        std::vector<std::string>{"0.0001", "0.001", "0.01", "0.1", "1"});
  CHECK(log_ticks(1e-30, 1).values.size() <= 10);
}

}  // namespace
