#include "partitioner/base/quantities.h"

#include <limits>

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

TEST_CASE("energies have three digits and the multiple of a joule that fits") {
  CHECK(readable_energy(0) == "0 J");
  CHECK(readable_energy(0.0042) == "4.20 mJ");
  CHECK(readable_energy(99) == "99.0 J");
  CHECK(readable_energy(12345) == "12.3 kJ");
  CHECK(readable_energy(999'960) == "1.00 MJ");
  CHECK(readable_energy(2.5e9) == "2.50 GJ");
}

TEST_CASE("seconds have the unit that fits") {
  CHECK(readable_seconds(0.00042) == "0.420 ms");
  CHECK(readable_seconds(0.5) == "500 ms");
  CHECK(readable_seconds(1.5) == "1.50 s");
  CHECK(readable_seconds(150) == "2.50 min");
}

TEST_CASE("predictions have two digits, also where rounding adds one") {
  CHECK(two_digits(0) == "0");
  CHECK(two_digits(1234) == "1200");
  CHECK(two_digits(99.6) == "100");
  CHECK(two_digits(9.96) == "10");
  CHECK(two_digits(0.996) == "1.0");
  CHECK(two_digits(0.01234) == "0.012");
  CHECK(two_digits(std::numeric_limits<double>::infinity()) == "inf");
  CHECK(predicted_seconds(0.0934) == "93 ms");
  CHECK(predicted_seconds(0.9996) == "1.0 s");
  CHECK(predicted_seconds(18.4) == "18 s");
  CHECK(predicted_seconds(119) == "2.0 min");
  CHECK(predicted_seconds(4.83 * 3600) == "4.8 h");
  CHECK(predicted_seconds(151 * 3600) == "150 h");
  CHECK(predicted_energy(12345) == "12 kJ");
}

}  // namespace
