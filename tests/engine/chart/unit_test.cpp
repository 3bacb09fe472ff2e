#include "engine/chart/unit.h"

#include <limits>
#include <string>

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::quantity_text;
using engine::scaled_unit;
using engine::Unit;

TEST_CASE("quantities have three significant digits and the multiple of their unit that fits") {
  CHECK(quantity_text(1.4159, Unit::Seconds) == "1.42\u00a0s");
  CHECK(quantity_text(0.0123, Unit::Seconds) == "12.3\u00a0ms");
  CHECK(quantity_text(4e-6, Unit::Seconds) == "4.00\u00a0µs");
  CHECK(quantity_text(90, Unit::Seconds) == "90.0\u00a0s");
  CHECK(quantity_text(600, Unit::Seconds) == "10.0\u00a0min");
  CHECK(quantity_text(9000, Unit::Seconds) == "2.50\u00a0h");
  CHECK(quantity_text(1536, Unit::Bytes) == "1.50\u00a0KiB");
  CHECK(quantity_text(0.9731, Unit::Share) == "97.3\u00a0%");
  CHECK(quantity_text(0.00004, Unit::Share) == "4.00e-03\u00a0%");
  CHECK(quantity_text(1500, Unit::Joule) == "1.50\u00a0kJ");
  CHECK(quantity_text(1.5e9, Unit::Hertz) == "1.50\u00a0GHz");
  CHECK(quantity_text(-2.5, Unit::Number) == "-2.50");
}

TEST_CASE("what rounds to the next multiple is shown in it") {
  CHECK(quantity_text(0.99996, Unit::Seconds) == "1.00\u00a0s");
  CHECK(std::string(scaled_unit(Unit::Bytes, 1023.99).name) == "KiB");
}

TEST_CASE("nothing is 0 of the plain unit, and what is unknown a dash") {
  CHECK(quantity_text(0, Unit::Seconds) == "0\u00a0s");
  CHECK(quantity_text(0, Unit::Bytes) == "0\u00a0B");
  CHECK(quantity_text(std::numeric_limits<double>::quiet_NaN(), Unit::Watt) == "–");
}

}  // namespace
