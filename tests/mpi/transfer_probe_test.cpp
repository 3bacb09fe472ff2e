#include "engine/execution/transfer_probe.h"

#include <cmath>
#include <limits>

#include <doctest/doctest.h>

namespace {

using engine::Communicator;
using engine::measure_byte_s_of_kernels;

constexpr double kSeconds = 0.1;

}  // namespace

TEST_CASE("what messages cost kernels is a time, and ends, at any rate") {
  const Communicator world = Communicator::world();
  for (const double bytes_per_s : {1e3, 1e8, std::numeric_limits<double>::infinity()}) {
    const double byte_s = measure_byte_s_of_kernels(world, bytes_per_s, kSeconds, true);
    CHECK(std::isfinite(byte_s));
    CHECK(byte_s >= 0);
    if (world.size() == 1) {
      CHECK(byte_s == 0);  // nobody to send to
    }
  }
}

TEST_CASE("where messages do not move beside kernels they cost these nothing") {
  const Communicator world = Communicator::world();
  CHECK(measure_byte_s_of_kernels(world, 1e8, kSeconds, false) == 0);
}
