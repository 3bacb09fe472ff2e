#include "engine/probe/transfer_probe.h"

#include <cmath>
#include <limits>
#include <optional>

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Communicator;
using engine::measure_byte_s_of_kernels;

constexpr double kTransferSeconds = 0.1;

}  // namespace

TEST_CASE("what messages cost kernels is a time, and ends, at any rate") {
  const Communicator world = Communicator::world();
  for (const double bytes_per_s : {1e3, 1e8, std::numeric_limits<double>::infinity()}) {
    const std::optional<double> byte_s =
        measure_byte_s_of_kernels(world, bytes_per_s, kTransferSeconds, true);
    if (world.size() == 1) {
      CHECK(!byte_s);  // nobody to send to
      continue;
    }
    REQUIRE(byte_s);
    CHECK(std::isfinite(*byte_s));
    CHECK(*byte_s >= 0);
  }
}

TEST_CASE("where messages do not move beside kernels nothing is measured") {
  const Communicator world = Communicator::world();
  CHECK(!measure_byte_s_of_kernels(world, 1e8, kTransferSeconds, false));
}
