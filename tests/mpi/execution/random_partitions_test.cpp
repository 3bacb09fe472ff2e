// Any partition, one result: random networks, cut at random, compute what one tile computes.

#include <cstdint>
#include <string>

#include "tests/support/like_one_tile.h"
#include "tests/support/random_network.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Communicator;
using engine::NamedTensors;

constexpr int kCases = 80;  // per number of ranks: 1, 2, 3, 4 and 7

// Products with a dense matrix are a library's: its order of summation depends on the number of
// images and outputs.
constexpr double kDense = 1e-5;

std::uint64_t seed_of(int test_case, int ranks) {
  return static_cast<std::uint64_t>(ranks) * 1000 + static_cast<std::uint64_t>(test_case);
}

template <class T>
NamedTensors cut_up(const tests::RandomCase& random,
                    const NamedTensors& in,
                    const Communicator& world) {
  return engine::vector_jacobian_product<T>(
      {.network = random.network, .partition = random.partition}, in, world);
}

TEST_CASE(
    "in double precision any partition computes what one tile computes, with batch normalisation") {
  const Communicator world = Communicator::world();
  for (int i = 0; i < kCases; ++i) {
    const std::uint64_t seed = seed_of(i, world.size());
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

TEST_CASE("in double precision any kernels compute what the direct ones compute on one tile") {
  const Communicator world = Communicator::world();
  for (int i = 0; i < kCases; ++i) {
    const std::uint64_t seed = seed_of(i, world.size()) + 700;
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
    const std::uint64_t seed = seed_of(i, world.size()) + 500;
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

TEST_CASE(
    "in single precision any partition gives the same bits as one tile, without batch "
    "normalisation") {
  const Communicator world = Communicator::world();
  for (int i = 0; i < kCases; ++i) {
    const std::uint64_t seed = seed_of(i, world.size()) + 100;
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
    const std::uint64_t seed = seed_of(i, world.size()) + 200;
    const tests::RandomCase random = tests::random_case(seed, world.size(), {});
    const NamedTensors in = tests::random_tensors(random.network, random.batch, seed);
    const NamedTensors first = cut_up<float>(random, in, world);
    const NamedTensors second = cut_up<float>(random, in, world);
    const std::string wrong = tests::differences(second, first, {.relative = 0, .share = 0});
    CHECK_MESSAGE(wrong.empty(), "seed ", seed, ":\n", wrong);
  }
}

}  // namespace
