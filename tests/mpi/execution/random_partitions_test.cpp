// Any partition, one result: random networks, cut at random, compute what one tile computes.

#include <cstdint>
#include <cstring>
#include <string>

#include "tests/support/like_one_tile.h"
#include "tests/support/random_network.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Communicator;
using engine::NamedTensors;

constexpr int kRandomCases = 60;  // per number of ranks: 1, 2, 3, 4 and 7

// Products with a dense matrix are a library's: its order of summation depends on the number of
// images and outputs.
constexpr double kDense = 1e-5;

template <class T>
NamedTensors cut_up(const tests::RandomCase& random,
                    const NamedTensors& in,
                    const Communicator& world,
                    const partitioner::NormRule& norm = {}) {
  return engine::vector_jacobian_product<T>(
      {.network = random.network, .partition = random.partition, .norm = norm}, in, world);
}

TEST_CASE(
    "in double precision any partition computes what one tile computes, with batch normalisation") {
  const Communicator world = Communicator::world();
  for (int i = 0; i < kRandomCases; ++i) {
    const std::uint64_t seed = tests::case_seed(i, world.size());
    const tests::RandomCase random = tests::random_case(seed, world.size(), {});
    const NamedTensors in = tests::random_tensors(random.network, random.batch, seed);
    const NamedTensors found = cut_up<double>(random, in, world);
    if (world.rank() == 0) {
      const std::string wrong = tests::differences(
          found, tests::on_one_tile<double>(random.network, in), tests::kTwoOrders);
      CHECK_MESSAGE(wrong.empty(), "seed ", seed, ":\n", wrong, tests::describe(random));
    }
  }
}

TEST_CASE(
    "in double precision any partition computes what one tile computes, by Darknet's rule of batch "
    "normalisation") {
  const Communicator world = Communicator::world();
  const auto& rule = partitioner::kDarknetNorm;
  for (int i = 0; i < kRandomCases / 2; ++i) {
    const std::uint64_t seed = tests::case_seed(i, world.size()) + 900;
    tests::RandomCase random = tests::random_case(
        seed, world.size(), {.of_detectors = i % 2 == 1, .of_graphs = i % 3 == 0});
    tests::Draw draw(seed);
    tests::draw_kernels(draw, random);
    const NamedTensors in = tests::random_tensors(random.network, random.batch, seed);
    const NamedTensors found = cut_up<double>(random, in, world, rule);
    if (world.rank() == 0) {
      const NamedTensors expected =
          tests::on_one_tile<double>(random.network, in, engine::BatchNormMode::Sync, rule);
      const std::string wrong = tests::differences(found, expected, tests::kTwoOrders);
      CHECK_MESSAGE(wrong.empty(), "seed ", seed, ":\n", wrong, tests::describe(random));
    }
  }
}

TEST_CASE(
    "in double precision any partition of what detectors are made of computes what one tile does") {
  const Communicator world = Communicator::world();
  for (int i = 0; i < kRandomCases; ++i) {
    const std::uint64_t seed = tests::case_seed(i, world.size()) + 300;
    tests::RandomCase random =
        tests::random_case(seed, world.size(), {.of_detectors = true, .of_graphs = i % 2 == 0});
    tests::Draw draw(seed);
    tests::draw_kernels(draw, random);
    const NamedTensors in = tests::random_tensors(random.network, random.batch, seed);
    const NamedTensors found = cut_up<double>(random, in, world);
    if (world.rank() == 0) {
      const std::string wrong = tests::differences(
          found, tests::on_one_tile<double>(random.network, in), tests::kTwoOrders);
      CHECK_MESSAGE(wrong.empty(), "seed ", seed, ":\n", wrong, tests::describe(random));
    }
  }
}

TEST_CASE("in double precision any kernels compute what the direct ones compute on one tile") {
  const Communicator world = Communicator::world();
  for (int i = 0; i < kRandomCases; ++i) {
    const std::uint64_t seed = tests::case_seed(i, world.size()) + 700;
    tests::RandomCase random = tests::random_case(seed, world.size(), {});
    tests::Draw draw(seed);
    tests::draw_kernels(draw, random);
    const NamedTensors in = tests::random_tensors(random.network, random.batch, seed);
    const NamedTensors found = cut_up<double>(random, in, world);
    if (world.rank() == 0) {
      const std::string wrong = tests::differences(
          found, tests::on_one_tile<double>(random.network, in), tests::kTwoOrders);
      CHECK_MESSAGE(wrong.empty(), "seed ", seed, ":\n", wrong, tests::describe(random));
    }
  }
}

TEST_CASE(
    "in double precision any partition computes what one tile computes, with frozen statistics") {
  const Communicator world = Communicator::world();
  constexpr int kFewer = 12;
  for (int i = 0; i < kFewer; ++i) {
    const std::uint64_t seed = tests::case_seed(i, world.size()) + 500;
    const tests::RandomCase random = tests::random_case(seed, world.size(), {});
    const NamedTensors in = tests::random_tensors(random.network, random.batch, seed);
    const auto frozen = engine::BatchNormMode::Frozen;
    const NamedTensors found = engine::vector_jacobian_product<double>(
        {.network = random.network, .partition = random.partition, .batch_norm = frozen},
        in,
        world);
    if (world.rank() == 0) {
      const std::string wrong = tests::differences(
          found, tests::on_one_tile<double>(random.network, in, frozen), tests::kTwoOrders);
      CHECK_MESSAGE(wrong.empty(), "seed ", seed, ":\n", wrong, tests::describe(random));
    }
  }
}

TEST_CASE("with frozen layers any partition computes what one tile computes") {
  const Communicator world = Communicator::world();
  for (int i = 0; i < kRandomCases; ++i) {
    const std::uint64_t seed = tests::case_seed(i, world.size()) + 300;
    tests::RandomCase random = tests::random_case(seed, world.size(), {.frozen = 1});
    tests::Draw draw(seed);
    if (i % 2 == 0) {
      tests::draw_kernels(draw, random);
    }
    const NamedTensors in = tests::random_tensors(random.network, random.batch, seed);
    const NamedTensors found = cut_up<double>(random, in, world);
    if (world.rank() == 0) {
      const std::string wrong = tests::differences(
          found, tests::on_one_tile<double>(random.network, in), tests::kTwoOrders);
      CHECK_MESSAGE(wrong.empty(), "seed ", seed, ":\n", wrong, tests::describe(random));
    }
  }
}

// With running statistics in all layers, so that only what is frozen makes a difference.
TEST_CASE("layers that learn get the gradients that they get where nothing is frozen") {
  const Communicator world = Communicator::world();
  for (int i = 0; i < kRandomCases / 2; ++i) {
    const std::uint64_t seed = tests::case_seed(i, world.size()) + 400;
    const tests::RandomCase random = tests::random_case(seed, world.size(), {.frozen = 1});
    const NamedTensors in = tests::random_tensors(random.network, random.batch, seed);
    const auto running = engine::BatchNormMode::Frozen;
    const NamedTensors found = engine::vector_jacobian_product<double>(
        {.network = random.network, .partition = random.partition, .batch_norm = running},
        in,
        world);
    if (world.rank() != 0) {
      continue;
    }
    partitioner::Network learning = random.network;
    freeze(learning, -1);
    NamedTensors expected = tests::on_one_tile<double>(learning, in, running);
    const int last = last_frozen(random.network);
    std::erase_if(expected, [&](const auto& named) {
      const bool of_frozen = named.first.starts_with("layers.") &&
                             std::stoi(named.first.substr(std::strlen("layers."))) <= last;
      return (named.first == "input_gradient" && last >= 0) || of_frozen;
    });
    const std::string wrong = tests::differences(found, expected, tests::kTwoOrders);
    CHECK_MESSAGE(wrong.empty(), "seed ", seed, ":\n", wrong, tests::describe(random));
  }
}

TEST_CASE(
    "in single precision any partition gives the same bits as one tile, without batch "
    "normalisation") {
  const Communicator world = Communicator::world();
  for (int i = 0; i < kRandomCases; ++i) {
    const std::uint64_t seed = tests::case_seed(i, world.size()) + 100;
    const tests::RandomCase random =
        tests::random_case(seed, world.size(), {.batch_normalize = false});
    const NamedTensors in = tests::random_tensors(random.network, random.batch, seed);
    const NamedTensors found = cut_up<float>(random, in, world);
    if (world.rank() == 0) {
      const engine::NamedTensor expected =
          tests::on_one_tile<float>(random.network, in).at("output");
      const double difference = tests::largest_difference(found.at("output"), expected);
      const double bound =
          tests::has_connected(random.network) ? kDense * tests::largest_magnitude(expected) : 0;
      CHECK_MESSAGE(
          difference <= bound, "seed ", seed, ": ", difference, '\n', tests::describe(random));
    }
  }
}

TEST_CASE("two runs of the same partition give the same bits") {
  const Communicator world = Communicator::world();
  constexpr int kFew = 5;
  for (int i = 0; i < kFew; ++i) {
    const std::uint64_t seed = tests::case_seed(i, world.size()) + 200;
    const tests::RandomCase random = tests::random_case(seed, world.size(), {});
    const NamedTensors in = tests::random_tensors(random.network, random.batch, seed);
    const NamedTensors first = cut_up<float>(random, in, world);
    const NamedTensors second = cut_up<float>(random, in, world);
    const std::string wrong = tests::differences(second, first, {.relative = 0, .share = 0});
    CHECK_MESSAGE(wrong.empty(), "seed ", seed, ":\n", wrong);
  }
}

}  // namespace
