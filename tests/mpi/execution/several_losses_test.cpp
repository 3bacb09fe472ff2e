// Networks that are judged in several places.

#include <string>
#include <utility>
#include <vector>

#include "tests/support/like_one_tile.h"
#include "tests/support/loss_gradients.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Communicator;
using engine::NamedTensors;
using partitioner::Network;

constexpr int kLossCases = 40;

// A random network that is judged in two or three places, perhaps more; or in one, where branches
// share it.
tests::RandomCase random_branches(std::uint64_t seed, int ranks) {
  tests::Draw draw(seed);
  tests::RandomCase result;
  result.batch = draw.between(1, 4);
  result.network = tests::random_network(draw, {.batch = result.batch, .most_layers = 6});
  tests::add_losses(draw, result.network);
  result.partition = tests::random_partition(draw, result.network, result.batch, ranks);
  tests::draw_recomputation(draw, result.partition);
  return result;
}

NamedTensors on_one_tile(const Network& network,
                         const NamedTensors& in,
                         const engine::Targets& targets) {
  return tests::loss_gradients(
      network, partitioner::single_tile(network), in, targets, Communicator::self());
}

void set_weight(partitioner::Operation& operation, double weight) {
  if (auto* softmax = std::get_if<partitioner::Softmax>(&operation)) {
    softmax->scale = weight;
  } else {
    std::get<partitioner::Cost>(operation).scale = weight;
  }
}

// The sum over its losses, each by itself.
NamedTensors sum_of_single_losses(const Network& network,
                                  const NamedTensors& in,
                                  const engine::Targets& targets) {
  NamedTensors sum;
  for (const partitioner::Loss& kept : losses(network)) {
    Network single = network;
    for (const partitioner::Loss& other : losses(network)) {
      set_weight(single.layers[static_cast<std::size_t>(other.layer)].operation,
                 other.layer == kept.layer ? other.weight : 0);
    }
    for (auto& [name, tensor] : on_one_tile(single, in, targets)) {
      const auto [known, is_new] = sum.try_emplace(name, tensor);
      for (std::size_t i = 0; i < tensor.values.size() && !is_new; ++i) {
        known->second.values[i] += tensor.values[i];
      }
    }
  }
  return sum;
}

TEST_CASE("with several losses any partition computes what one tile computes") {
  const Communicator world = Communicator::world();
  for (int i = 0; i < kLossCases; ++i) {
    const auto seed = static_cast<std::uint64_t>(world.size() * 1000 + i);
    const tests::RandomCase random = random_branches(seed, world.size());
    const NamedTensors in = tests::random_tensors(random.network, random.batch, seed);
    const engine::Targets targets =
        tests::some_targets(random.batch, tests::fewest_outputs(random.network));
    const NamedTensors found =
        tests::loss_gradients(random.network, random.partition, in, targets, world);
    if (world.rank() == 0) {
      CHECK(!losses(random.network).empty());
      const std::string wrong =
          tests::differences(found, on_one_tile(random.network, in, targets), tests::kTwoOrders);
      CHECK_MESSAGE(wrong.empty(), "seed ", seed, ":\n", wrong, tests::describe(random));
    }
  }
}

TEST_CASE("a network's loss and gradients are the sums of those of its losses") {
  const Communicator world = Communicator::world();
  if (world.rank() != 0) {
    return;
  }
  for (int i = 0; i < kLossCases; ++i) {
    const auto seed = static_cast<std::uint64_t>(world.size() * 1000 + i + 500);
    const tests::RandomCase random = random_branches(seed, 1);
    const NamedTensors in = tests::random_tensors(random.network, random.batch, seed);
    const engine::Targets targets =
        tests::some_targets(random.batch, tests::fewest_outputs(random.network));
    const std::string wrong = tests::differences(on_one_tile(random.network, in, targets),
                                                 sum_of_single_losses(random.network, in, targets),
                                                 tests::kTwoOrders);
    CHECK_MESSAGE(wrong.empty(), "seed ", seed, ":\n", wrong, tests::describe(random));
  }
}

}  // namespace
