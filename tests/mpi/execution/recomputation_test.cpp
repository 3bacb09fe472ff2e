// Computing a group again instead of keeping it changes memory and time, and no bit.

#include <cstdint>
#include <vector>

#include "tests/support/chain.h"
#include "tests/support/cuts.h"
#include "tests/support/like_one_tile.h"
#include "tests/support/reduced_gradients.h"
#include <doctest/doctest.h>

#include "engine/base/random.h"
#include "engine/execution/execution.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Communicator;
using engine::Execution;
using engine::NamedTensors;
using engine::Pass;
using partitioner::kImage;
using partitioner::Network;
using partitioner::Partition;
using partitioner::Plan;

constexpr tests::Bounds kSameBits{.relative = 0, .share = 0};

// Some group at least.
void recompute_some(tests::Draw& draw, Partition& partition) {
  tests::draw_recomputation(draw, partition);
  const auto last = static_cast<Index>(partition.groups.size()) - 1;
  partition.groups[static_cast<std::size_t>(draw.between(0, last))].recompute = true;
}

// All that a pass makes, running statistics included.
template <class T>
void check_same_bits(const tests::RandomCase& random,
                     std::uint64_t seed,
                     engine::BatchNormMode mode = engine::BatchNormMode::Sync) {
  const Communicator world = Communicator::world();
  const NamedTensors in = tests::random_tensors(random.network, random.batch, seed);
  const auto product = [&](const Partition& partition) {
    return engine::vector_jacobian_product<T>(
        {.network = random.network, .partition = partition, .batch_norm = mode}, in, world);
  };
  const NamedTensors found = product(random.partition);
  const NamedTensors kept = product(tests::without_recomputation(random.partition));
  const std::string wrong = tests::differences(found, kept, kSameBits);
  CHECK_MESSAGE(wrong.empty(), "seed ", seed, ":\n", wrong, tests::describe(random));
}

template <class T>
void check_random_cases(int cases, std::uint64_t from, bool with_kernels) {
  for (int i = 0; i < cases; ++i) {
    const std::uint64_t seed = tests::case_seed(i, tests::ranks()) + from;
    tests::RandomCase random = tests::random_case(seed, tests::ranks(), {});
    tests::Draw draw(seed);
    recompute_some(draw, random.partition);
    if (with_kernels) {
      tests::draw_kernels(draw, random);
    }
    check_same_bits<T>(random, seed);
  }
}

TEST_CASE("recomputed groups give the same bits of every gradient, by direct kernels") {
  check_random_cases<float>(80, 0, false);
}

TEST_CASE("recomputed groups give the same bits of every gradient, by any kernels") {
  check_random_cases<float>(40, 300, true);
}

TEST_CASE("recomputed groups give the same bits of every gradient, in double precision") {
  check_random_cases<double>(40, 600, false);
}

TEST_CASE("recomputed groups give the same bits with frozen statistics, and those of tiles") {
  for (int i = 0; i < 10; ++i) {
    const std::uint64_t seed = tests::case_seed(i, tests::ranks()) + 800;
    tests::RandomCase random = tests::random_case(seed, tests::ranks(), {});
    tests::Draw draw(seed);
    recompute_some(draw, random.partition);
    check_same_bits<float>(random, seed, engine::BatchNormMode::Frozen);
    check_same_bits<float>(random, seed, engine::BatchNormMode::PerTile);
  }
}

// Fused pools, dropout, activations whose slope needs pre-activations, a loss.
Network classifier() {
  using tests::convolution;
  using tests::normalized;
  return tests::chain({3, 18, 14},
                      {normalized(convolution(6, 3)),
                       partitioner::MaxPool{2, 2, 0},
                       convolution(8, 3, 1, partitioner::Activation::Mish),
                       partitioner::Dropout{0.4},
                       normalized(convolution(8, 3)),
                       convolution(5, 1, 1, partitioner::Activation::Relu),
                       partitioner::MaxPool{2, 2, 0},
                       partitioner::AvgPool{},
                       partitioner::Connected{4, false, partitioner::Activation::Linear},
                       partitioner::Softmax{},
                       partitioner::Cost{}});
}

constexpr Index kBatch = 5;

struct Recomputes {
  bool tiles = true;
  bool tail = true;
};

Partition partition_of(const Network& network, const Recomputes& recomputes) {
  const int ranks = tests::ranks();
  Partition partition =
      tests::partition_of(network,
                          ranks,
                          {{0, 1}, {2, 6}, {7, 10}},
                          {tests::grid(ranks), tests::grid(ranks), tests::images_cut(ranks)});
  partition.groups[0].recompute = partition.groups[1].recompute = recomputes.tiles;
  partition.groups[2].recompute = recomputes.tail;
  return partition;
}

// Gradients and statistics after two steps of two passes each.
std::vector<std::vector<float>> trained(const Partition& partition, bool keep_maps) {
  const Network network = classifier();
  const Communicator world = Communicator::world();
  const Plan plan = make_plan(network, partition, kBatch);
  Execution<float> execution(network, plan, world, {.keep_maps = keep_maps});
  execution.parameters().initialize(3);
  engine::Targets targets = engine::class_targets({0, 3, 1, 0, 2});
  targets[3].reset();
  Pass pass;
  pass.seed = 9;
  pass.targets = &targets;
  pass.loss_scale = 1.0 / kBatch;
  std::vector<std::vector<float>> results;
  for (pass.step = 0; pass.step < 2; ++pass.step) {
    execution.parameters().clear_gradients();
    for (pass.first_image = 0; pass.first_image < 2 * kBatch; pass.first_image += kBatch) {
      std::vector<float> image(
          world.rank() == 0 ? static_cast<std::size_t>(whole_map(network, kImage, kBatch).volume())
                            : 0);
      for (std::size_t i = 0; i < image.size(); ++i) {
        image[i] = static_cast<float>(
            engine::random_normal(1, static_cast<std::uint64_t>(pass.first_image), i));
      }
      execution.scatter_image(image);
      execution.forward(pass);
      execution.clear_output_gradient();
      execution.backward(pass);
    }
    tests::reduce_gradients(execution.parameters(), pass.batch_norm);
    for (const auto& parameter : execution.parameters().all()) {
      const bool learnt = partitioner::is_learnt(*parameter.plan);
      results.push_back(execution.parameters().gather(
          parameter, learnt ? parameter.gradient.data() : parameter.values.data()));
    }
  }
  return results;
}

TEST_CASE("dropout, losses and passes that a step is divided into come out the same") {
  const Network network = classifier();
  const auto kept = trained(partition_of(network, {false, false}), false);
  for (const Recomputes& recomputes :
       {Recomputes{true, true}, Recomputes{true, false}, Recomputes{false, true}}) {
    for (const bool keep_maps : {false, true}) {
      CHECK(trained(partition_of(network, recomputes), keep_maps) == kept);
    }
  }
}

TEST_CASE("without a backward pass nothing is recomputed") {
  const Network network = classifier();
  const Communicator world = Communicator::world();
  const auto memory = [&](bool recompute) {
    const Plan plan = make_plan(network, partition_of(network, {recompute, recompute}), kBatch);
    return Execution<float>(network, plan, world, {.training = false}).memory().activations;
  };
  CHECK(memory(true) == memory(false));
}

}  // namespace
