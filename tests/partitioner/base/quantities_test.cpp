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

}  // namespace
