// One partition of one network, compared with what one tile computes.

#pragma once

#include <string>

#include "tests/support/random_tensors.h"
#include <doctest/doctest.h>

namespace tessera::tests {

// Two orders of summation in double precision.
inline constexpr Bounds kTwoOrders{.relative = 1e-10, .share = 1e-3};

[[nodiscard]] inline int ranks() {
  return engine::Communicator::world().size();
}

// The result on rank 0 in double precision, after comparing all of it with one tile's. All ranks
// call this together.
inline NamedTensors check_like_one_tile(const partitioner::Network& network,
                                        const partitioner::Partition& partition,
                                        Index batch,
                                        const NamedTensors& in) {
  const engine::Communicator world = engine::Communicator::world();
  NamedTensors found = engine::vector_jacobian_product<double>(
      {.network = network, .partition = partition}, in, world);
  if (world.rank() == 0) {
    const std::string wrong = differences(found, on_one_tile<double>(network, in), kTwoOrders);
    CHECK_MESSAGE(wrong.empty(), wrong, describe({network, batch, partition}));
  }
  return found;
}

inline NamedTensors check_like_one_tile(const partitioner::Network& network,
                                        const partitioner::Partition& partition,
                                        Index batch = 2) {
  return check_like_one_tile(network, partition, batch, random_tensors(network, batch, 11));
}

}  // namespace tessera::tests
