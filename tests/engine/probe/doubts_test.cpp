#include "engine/probe/doubts.h"

#include <limits>

#include "tests/support/refusals.h"
#include <doctest/doctest.h>

namespace tessera::engine {

TEST_CASE("what cannot be true of a device is said, and what can is not") {
  partitioner::DeviceProfile measured;
  measured.send_bytes_per_s = 11.8e6;
  measured.receive_bytes_per_s = 11.7e6;
  measured.memory_bytes = Index{900} << 20;
  DeviceLimits limits{.interface = "eth0", .negotiated_bits_per_s = 1e8};
  CHECK(doubts(measured, limits).empty());
  measured.receive_bytes_per_s = 250e6;
  REQUIRE(doubts(measured, limits).size() == 1);
  CHECK(tests::has(doubts(measured, limits)[0],
                   "2000 Mbit/s were measured, but eth0 has negotiated 100"));
  measured.receive_bytes_per_s = std::numeric_limits<double>::infinity();
  limits.memory_bytes = Index{400} << 20;
  REQUIRE(doubts(measured, limits).size() == 1);
  CHECK(tests::has(doubts(measured, limits)[0], "allows a process 400.0 MiB"));
  limits.memory_bytes.reset();
  limits.throttled_share = 0.47;
  CHECK(doubts(measured, limits).empty());
  limits.throttled_share = 0.93;
  REQUIRE(doubts(measured, limits).size() == 1);
  CHECK(tests::has(doubts(measured, limits)[0], "used up in 93 % of the periods"));
}

}  // namespace tessera::engine
