#include "engine/base/random.h"

#include <cmath>
#include <set>

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

constexpr std::uint64_t kDraws = 1000000;
// Five standard deviations of the mean of kDraws values of variance 1.
constexpr double kFiveSigma = 5e-3;

}  // namespace

TEST_CASE("random bits never change from one version of the program to the next") {
  CHECK(engine::random_bits(0, 0) == 0x2130748aaac80268U);
  CHECK(engine::random_bits(1, 2, 3, 4) == 0x2944ecb97de769b2U);
  CHECK(engine::random_bits(~std::uint64_t{0}, 1) == 0xfeb4737ab9dff10cU);
  CHECK(engine::random_uniform(42, 7, 1) == 0x1.2b46dfe3235e2p-1);
}

TEST_CASE("the bits of the first SplitMix64 stream are those of its publication") {
  // The output for seed 1234567 that implementations are commonly checked against.
  CHECK(engine::mix_bits(1234567U + engine::kGolden) == 6457827717110365317U);
  CHECK(engine::mix_bits(1234567U + 2 * engine::kGolden) == 3203168211198807973U);
}

TEST_CASE("normal random numbers have mean 0, variance 1, no skew and the normal's fourth moment") {
  bool finite = true;
  double sum = 0;
  double squares = 0;
  double cubes = 0;
  double fourths = 0;
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    const double x = engine::random_normal(7, 1, 2, i);
    finite = finite && std::isfinite(x);
    sum += x;
    squares += x * x;
    cubes += x * x * x;
    fourths += x * x * x * x;
  }
  CHECK(finite);
  CHECK(std::abs(sum / kDraws) < kFiveSigma);
  CHECK(std::abs(squares / kDraws - 1) < kFiveSigma * std::sqrt(2.0));
  CHECK(std::abs(cubes / kDraws) < kFiveSigma * std::sqrt(15.0));
  CHECK(std::abs(fourths / kDraws - 3) < kFiveSigma * std::sqrt(96.0));
}

TEST_CASE("uniform random numbers fill the range from 0 to 1 evenly along each argument") {
  for (int argument = 0; argument < 4; ++argument) {
    double sum = 0;
    double squares = 0;
    bool inside = true;
    for (std::uint64_t i = 0; i < kDraws; ++i) {
      const double x = argument == 0   ? engine::random_uniform(i, 5, 6, 7)
                       : argument == 1 ? engine::random_uniform(4, i, 6, 7)
                       : argument == 2 ? engine::random_uniform(4, 5, i, 7)
                                       : engine::random_uniform(4, 5, 6, i);
      inside = inside && x >= 0 && x < 1;
      sum += x - 0.5;
      squares += (x - 0.5) * (x - 0.5);
    }
    CHECK(inside);
    CHECK(std::abs(sum / kDraws) < kFiveSigma / std::sqrt(12.0));
    CHECK(std::abs(squares / kDraws - 1.0 / 12) < kFiveSigma / std::sqrt(180.0));
  }
}

TEST_CASE("small arguments in any order draw different numbers") {
  std::set<std::uint64_t> seen;
  for (std::uint64_t i = 0; i < 1296; ++i) {
    seen.insert(engine::random_bits(i % 6, i / 6 % 6, i / 36 % 6, i / 216));
  }
  CHECK(seen.size() == 1296);
}
