// Random tensors for a network, and comparing what two runs made of them.

#pragma once

#include <cstdint>
#include <string>

#include "tests/support/random_network.h"

#include "engine/train/verifying/vector_jacobian.h"

namespace tessera::tests {

using engine::NamedTensor;
using engine::NamedTensors;

// "input", "output_gradient" and all parameters, signed. Weights have Darknet's deviation, so that
// values neither grow nor fade from layer to layer.
[[nodiscard]] NamedTensors random_tensors(const partitioner::Network& network,
                                          Index batch,
                                          std::uint64_t seed);

[[nodiscard]] double largest_magnitude(const NamedTensor& tensor);

// Infinite where shapes are not alike or a value is not a number.
[[nodiscard]] double largest_difference(const NamedTensor& found, const NamedTensor& expected);

// A difference may be `relative` times the largest element of the expected tensor. Some gradients
// are zero, or nearly so, in exact arithmetic (a bias below batch normalisation, its only weight):
// rounding is then that of the terms that cancel, which are as large as other gradients. So
// elements are not taken to be smaller than `share` of the largest of all gradients, or of 1, the
// size of the output's gradient.
struct Bounds {
  double relative = 0;
  double share = 0;
};

// What differs by more than the bounds, a line for each tensor; empty if nothing does.
[[nodiscard]] std::string differences(const NamedTensors& found,
                                      const NamedTensors& expected,
                                      const Bounds& bounds);

// The vector-Jacobian product of one tile on this rank alone.
template <class T>
[[nodiscard]] NamedTensors on_one_tile(const partitioner::Network& network,
                                       const NamedTensors& in,
                                       engine::BatchNormMode mode = engine::BatchNormMode::Sync,
                                       const partitioner::NormRule& norm = {}) {
  return engine::vector_jacobian_product<T>({.network = network,
                                             .partition = partitioner::single_tile(network),
                                             .batch_norm = mode,
                                             .norm = norm},
                                            in,
                                            engine::Communicator::self());
}

}  // namespace tessera::tests
