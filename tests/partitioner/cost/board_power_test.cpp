#include "partitioner/cost/board_power.h"

#include "tests/support/refusals.h"
#include <doctest/doctest.h>

#include "partitioner/cost/cluster_profile.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using namespace tessera::partitioner;  // NOLINT(google-build-using-namespace): a test of this
                                       // namespace

using tests::has;
using tests::input_error_of;

TEST_CASE("a board takes power in proportion to its busy cores, from idle to all of them") {
  const BoardPower& pi4 = board_power("pi4b");
  CHECK(power_w(pi4, 0) == doctest::Approx(2.15));
  CHECK(power_w(pi4, 2) == doctest::Approx(3.925));
  CHECK(power_w(pi4, 4) == doctest::Approx(5.7));
  CHECK(power_w(pi4, 9) == doctest::Approx(5.7));
  const PowerProfile profile = power_profile(pi4);
  CHECK(profile.estimated);
  CHECK(profile.relative_error == kTableError);
  REQUIRE(profile.busy_w.size() == 4);
  CHECK(power_w(profile, 3) == doctest::Approx(power_w(pi4, 3)));
}

TEST_CASE("a board is known by how its device tree begins") {
  CHECK(board_power_of_model("Raspberry Pi 3 Model B Plus Rev 1.3") == &board_power("pi3b+"));
  CHECK(board_power_of_model("Raspberry Pi 3 Model B Rev 1.2") == &board_power("pi3b"));
  CHECK(board_power_of_model("Some Board") == nullptr);
  CHECK(has(input_error_of([] { (void)board_power("pi3"); }), "expected pi3b+, pi3b"));
}

TEST_CASE("a device has its measured power, else that of its board, else none") {
  DeviceProfile device;
  CHECK(!known_power(device));
  device.board = "pi5";
  REQUIRE(known_power(device));
  CHECK(known_power(device)->idle_w == doctest::Approx(2.8));
  PowerProfile measured;
  measured.idle_w = 3;
  measured.busy_w = {4};
  device.power = measured;
  CHECK(known_power(device) == measured);
}

}  // namespace
