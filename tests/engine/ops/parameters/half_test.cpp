#include "engine/ops/parameters/half.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include "engine/base/random.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Half;

constexpr std::uint32_t kHalves = 65536;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// By the definition of the format.
float value_of(std::uint32_t half) {
  const int exponent = static_cast<int>((half >> 10U) & 0x1fU);
  const auto fraction = static_cast<float>(half & 0x3ffU);
  const float sign = (half & 0x8000U) != 0 ? -1.0F : 1.0F;
  if (exponent == 31) {
    return fraction == 0 ? sign * kInfinity : std::numeric_limits<float>::quiet_NaN();
  }
  return exponent == 0 ? sign * std::ldexp(fraction, -24)
                       : sign * std::ldexp(1024 + fraction, exponent - 25);
}

Half to_half(float value) {
  Half half = 0;
  engine::round_to_halves(1, 1, &value, &half);
  return half;
}

float from_half(Half half) {
  float value = -0.0F;  // leaves the sign of what is added
  engine::add_halves(1, &half, 1, &value);
  return value;
}

}  // namespace

TEST_CASE("every half is the number that its format says") {
  for (std::uint32_t half = 0; half < kHalves; ++half) {
    const float found = from_half(static_cast<Half>(half));
    const float expected = value_of(half);
    CHECK((std::bit_cast<std::uint32_t>(found) == std::bit_cast<std::uint32_t>(expected) ||
           (std::isnan(found) && std::isnan(expected))));
  }
}

TEST_CASE("every half comes back from its number, and no number stays none") {
  for (std::uint32_t half = 0; half < kHalves; ++half) {
    const float value = value_of(half);
    const Half back = to_half(value);
    CHECK((std::isnan(value) ? std::isnan(value_of(back)) : back == half));
  }
}

TEST_CASE("numbers between two halves go to the nearer one, half way to the even one") {
  for (std::uint32_t half = 0; half + 1 < 0x7c00U; ++half) {
    const float low = value_of(half);
    const float high = value_of(half + 1);
    const float middle = (low + high) / 2;  // exact
    const std::uint32_t even = half % 2 == 0 ? half : half + 1;
    CHECK(to_half(middle) == even);
    CHECK(to_half(-middle) == (even | 0x8000U));
    CHECK(to_half(std::nextafter(middle, low)) == half);
    CHECK(to_half(std::nextafter(middle, high)) == half + 1);
  }
  CHECK(to_half(65519.99F) == 0x7bffU);
  CHECK(to_half(65520.0F) == 0x7c00U);
  CHECK(to_half(1e30F) == 0x7c00U);
  CHECK(to_half(-kInfinity) == 0xfc00U);
  CHECK(to_half(1e-30F) == 0);
}

TEST_CASE("the unit of halves brings the largest magnitude just below 2^15") {
  for (const float largest : {1.0F, 3.0e38F, 1.2e-38F, 0.9999999F, 65504.0F, 1e-7F}) {
    const float unit = engine::half_unit(largest);
    int exponent = 0;
    CHECK(std::frexp(unit, &exponent) == 0.5F);
    CHECK(largest / unit < 32768.0F);
    CHECK((largest / unit >= 16384.0F || unit == 0x1p-126F));
    CHECK(std::isfinite(1 / unit));
  }
  CHECK(engine::half_unit(0) == 1);
  CHECK(engine::half_unit(kInfinity) == 1);
  CHECK(engine::half_unit(std::numeric_limits<float>::quiet_NaN()) == 1);
}

TEST_CASE("the largest magnitude is infinite or no number where a value is") {
  std::vector<float> values(100, -1.5F);
  const auto largest = [&values] {
    return engine::largest_magnitude(values.data(), std::ssize(values), 0.25F);
  };
  CHECK(largest() == 1.5F);
  CHECK(engine::largest_magnitude(values.data(), 0, 0.25F) == 0.25F);
  values[37] = -kInfinity;
  CHECK(std::isinf(largest()));
  values[70] = std::numeric_limits<float>::quiet_NaN();
  CHECK(std::isnan(largest()));
}

TEST_CASE("rounding leaves what the halves lack, and adding them brings back the rest") {
  constexpr Index kCount = 1000;
  for (const double deviation : {1e-30, 1e-6, 1.0, 1e30}) {
    std::vector<float> values;
    for (std::uint64_t i = 0; i < kCount; ++i) {
      values.push_back(static_cast<float>(deviation * engine::random_normal(5, i)));
    }
    const std::vector<float> before = values;
    const float unit = engine::half_unit(engine::largest_magnitude(values.data(), kCount, 0));
    std::vector<Half> halves(kCount);
    engine::round_to_halves(unit, kCount, values.data(), halves.data());
    std::vector<float> sum = values;
    engine::add_halves(unit, halves.data(), kCount, sum.data());
    CHECK(sum == before);
    for (std::size_t i = 0; i < kCount; ++i) {
      const float relative = std::abs(values[i]) / std::max(std::abs(before[i]), unit * 0x1p-14F);
      CHECK(relative <= 0x1p-11F);  // half of the last of 11 bits
    }
  }
}

TEST_CASE("with error feedback, sums come to the exact value") {
  constexpr int kSteps = 10000;
  double expected = 0;
  double sum = 0;
  std::array<float, 2> values{};
  std::array<Half, 2> halves{};
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    const auto gradient = static_cast<float>(1e-3 * engine::random_normal(7, step) + 1e-5);
    expected += static_cast<double>(gradient);
    values[0] += gradient;
    values[1] = 1;  // sets the unit: a gradient is then far from exact
    const float unit = engine::half_unit(engine::largest_magnitude(values.data(), 2, 0));
    engine::round_to_halves(unit, 2, values.data(), halves.data());
    sum += static_cast<double>(from_half(halves[0]) * unit);
  }
  // All that is missing is the last error, and rounding of the errors themselves.
  CHECK(std::abs(sum - expected) < 1e-6);
}

TEST_CASE("what is not finite stays so on its way") {
  std::array<float, 3> values{1.0F, std::numeric_limits<float>::quiet_NaN(), -kInfinity};
  std::array<Half, 3> halves{};
  const float unit = engine::half_unit(engine::largest_magnitude(values.data(), 3, 0));
  engine::round_to_halves(unit, 3, values.data(), halves.data());
  std::array<float, 3> taken{};
  engine::add_halves(unit, halves.data(), 3, taken.data());
  CHECK(taken[0] == 1.0F);
  CHECK(std::isnan(taken[1]));
  CHECK(std::isinf(taken[2]));
}
