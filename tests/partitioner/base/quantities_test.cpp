#include "partitioner/base/quantities.h"

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

}  // namespace
