// Random networks and random partitions of them, for laws that must hold for all.
//
// Everything follows from the seed of a Draw, so that all ranks make the same case and a failure
// can be repeated. Networks are directed acyclic graphs of every kind of layer; partitions have
// groups of any length, uneven and empty tiles in all four dimensions, idle ranks, reductions to
// owners, recomputed groups and either kind of reader.

#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "partitioner/network/network.h"
#include "partitioner/partition/partition.h"

namespace tessera::tests {

// A row of random numbers.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : seed_(seed) {}

  // Both ends included.
  [[nodiscard]] Index between(Index least, Index most);
  [[nodiscard]] bool chance(double probability);
  template <class T>
  [[nodiscard]] T among(std::initializer_list<T> choices) {
    return choices.begin()[between(0, static_cast<Index>(choices.size()) - 1)];
  }

 private:
  std::uint64_t seed_;
  std::uint64_t drawn_ = 0;
};

struct NetworkWishes {
  Index batch = 1;
  bool batch_normalize = true;  // where a channel has at least 32 cells in the whole batch
  bool connected = true;
  Index most_layers = 9;
  // Also what detectors have: dilation, several maps added, products of maps, layers with weights
  // for each cell, pools over channels and with two strides, and more activations.
  bool of_detectors = false;
  // Also what imported graphs have: transposed convolutions, shuffled channels, values between
  // cells, and borders that differ from side to side.
  bool of_graphs = false;
  double frozen = 0;  // how often some of the first layers are, of random_case()
};

[[nodiscard]] partitioner::Network random_network(Draw& draw, const NetworkWishes& wishes);

// Two or three branches more, from random maps, that end in a softmax or a cost of random weight.
void add_losses(Draw& draw, partitioner::Network& network);

// One to three branches more, from random maps, that end in the head of a detector.
void add_heads(Draw& draw, partitioner::Network& network);

// One that validate() accepts.
[[nodiscard]] partitioner::Partition random_partition(Draw& draw,
                                                      const partitioner::Network& network,
                                                      Index batch,
                                                      int ranks);

// A network, a batch and a partition of it.
struct RandomCase {
  partitioner::Network network;
  Index batch = 1;
  partitioner::Partition partition;
};

// Seeds of tests on several ranks: each number of ranks has cases of its own.
[[nodiscard]] constexpr std::uint64_t case_seed(int test_case, int ranks) {
  return static_cast<std::uint64_t>(ranks) * 1000 + static_cast<std::uint64_t>(test_case);
}

[[nodiscard]] RandomCase random_case(std::uint64_t seed, int ranks, NetworkWishes wishes);

// Freezes the first layers of a network where a later one learns; does it change anything?
bool freeze_some(Draw& draw, partitioner::Network& network);

// For each pass of each convolution one of the kernels that can compute it.
void draw_kernels(Draw& draw, RandomCase& random);

// Which groups are recomputed: none, some or all of them.
void draw_recomputation(Draw& draw, partitioner::Partition& partition);
[[nodiscard]] partitioner::Partition without_recomputation(partitioner::Partition partition);

[[nodiscard]] bool has_connected(const partitioner::Network& network);

// For messages: a line for each layer, then the partition.
[[nodiscard]] std::string describe(const RandomCase& random);

}  // namespace tessera::tests
