#include "engine/power/energy_integral.h"

#include <cmath>

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::EnergyIntegral;

TEST_CASE("energy of watts is exact where they change linearly between readings") {
  EnergyIntegral integral(false, 1);
  double time_s = 100;
  for (const double step : {1.0, 0.5, 1.5, 1.0}) {
    integral.add({time_s, 2 + 0.5 * (time_s - 100)});
    time_s += step;
  }
  const engine::EnergyTotal total = integral.total(103);
  CHECK(total.energy_j == doctest::Approx(3 * 2 + 0.5 * 9 / 2).epsilon(1e-12));
  CHECK(total.measured_s == doctest::Approx(3));
  CHECK(total.gap_s == 0);
  CHECK(total.power_w == doctest::Approx(3.5));
}

TEST_CASE("energy of a curve that is read ten times in each wave is right to 1 %") {
  EnergyIntegral integral(false, 0.1);
  constexpr double kPi = 3.14159265358979;
  for (int i = 0; i <= 1005; ++i) {
    const double time_s = 0.1 * i;
    integral.add({time_s, 4 + 2 * std::sin(2 * kPi * time_s)});
  }
  const double truth = 4 * 100.5 + 2 * (1 - std::cos(2 * kPi * 100.5)) / (2 * kPi);
  CHECK(integral.total(100.5).energy_j == doctest::Approx(truth).epsilon(0.001));
}

TEST_CASE("a counter's energy is the difference of its readings, whatever lies between") {
  EnergyIntegral integral(true, 1);
  integral.add({10, 5000});
  CHECK(!integral.total(10).power_w);
  integral.add({11, 5003});
  integral.add({31, 5043});  // not read for long, but it counted on
  const engine::EnergyTotal total = integral.total(31);
  CHECK(total.energy_j == doctest::Approx(43));
  CHECK(total.measured_s == doctest::Approx(21));
  CHECK(total.gap_s == 0);
  CHECK(total.power_w == doctest::Approx(2));
}

TEST_CASE("a counter that goes back leaves a gap, not negative energy") {
  EnergyIntegral integral(true, 1);
  integral.add({0, 100});
  integral.add({1, 105});
  integral.add({2, 3});
  integral.add({3, 7});
  const engine::EnergyTotal total = integral.total(3);
  CHECK(total.energy_j == doctest::Approx(9));
  CHECK(total.measured_s == doctest::Approx(2));
  CHECK(total.gap_s == doctest::Approx(1));
}

TEST_CASE("without readings the last power counts for three periods, and then nothing does") {
  EnergyIntegral integral(false, 1);
  integral.add({0, 10});
  integral.add({1, 10});
  integral.add({3.5, 10});  // one or two readings were missed
  CHECK(integral.total(3.5).energy_j == doctest::Approx(35));
  integral.add({20, 10});
  const engine::EnergyTotal after = integral.total(20);
  CHECK(after.energy_j == doctest::Approx(35 + 30));
  CHECK(after.gap_s == doctest::Approx(13.5));
  CHECK(after.measured_s == doctest::Approx(6.5));
}

TEST_CASE("since the last reading the power stays the same, but not for long") {
  EnergyIntegral integral(false, 1);
  CHECK(integral.total(5).gap_s == 0);  // nothing has begun
  integral.add({0, 4});
  CHECK(integral.total(2).energy_j == doctest::Approx(8));
  const engine::EnergyTotal late = integral.total(10);
  CHECK(late.energy_j == doctest::Approx(12));
  CHECK(late.gap_s == doctest::Approx(7));
  CHECK(!late.power_w);
}

TEST_CASE("energy never falls: not when a meter stops, nor when its power turns out to be less") {
  EnergyIntegral integral(false, 1);
  integral.add({0, 10});
  double said_j = 0;
  for (double time_s = 0; time_s < 10; time_s += 0.25) {
    if (time_s == 1) {
      integral.add({1, 0});  // 5 J, of which 10 were said before
    } else if (time_s == 8) {
      integral.add({8, 1});
    }
    const double now_j = integral.total(time_s).energy_j;
    CHECK(now_j >= said_j);
    said_j = now_j;
  }
}

TEST_CASE("a counter that begins anew above its last reading, or jumps, leaves a gap") {
  EnergyIntegral integral(true, 1);
  CHECK(integral.add({0, 100}));
  CHECK(integral.add({1, 105}));
  CHECK_FALSE(integral.add({2, 110, true}));
  CHECK_FALSE(integral.add({3, 262143}));  // 262 kW
  CHECK(integral.add({4, 262150}));
  const engine::EnergyTotal total = integral.total(4);
  CHECK(total.energy_j == doctest::Approx(12));
  CHECK(total.measured_s == doctest::Approx(2));
  CHECK(total.gap_s == doctest::Approx(2));
}

TEST_CASE("two readings of the same time are one") {
  EnergyIntegral integral(false, 1);
  integral.add({0, 4});
  integral.add({0, 400});
  integral.add({1, 4});
  CHECK(integral.total(1).energy_j == doctest::Approx(4));
}

}  // namespace
