#include "partitioner/cost/power_profile.h"

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using partitioner::PowerScope;

TEST_CASE("power is as measured at whole numbers of cores, and linear between them") {
  partitioner::PowerProfile power;
  power.idle_w = 2;
  power.busy_w = {3, 3.5};
  CHECK(power_w(power, 0) == 2);
  CHECK(power_w(power, 0.25) == doctest::Approx(2.25));
  CHECK(power_w(power, 1) == 3);
  CHECK(power_w(power, 1.5) == doctest::Approx(3.25));
  CHECK(power_w(power, 2) == 3.5);
  CHECK(power_w(power, 7) == 3.5);
  CHECK(power_w(power, -1) == 2);
}

TEST_CASE("scopes are known by their names") {
  for (const PowerScope scope : {PowerScope::Processor, PowerScope::Rails, PowerScope::Device}) {
    CHECK(partitioner::power_scope_named(name_of(scope)) == scope);
  }
  CHECK(!partitioner::power_scope_named("cluster"));
}

}  // namespace
