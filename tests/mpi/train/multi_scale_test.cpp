// Steps with inputs of several sizes, by plans that take turns.

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <vector>

#include "tests/support/cuts.h"
#include <doctest/doctest.h>

#include "engine/train/trainer.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Communicator;
using engine::DataLoader;
using engine::SizedPlans;
using engine::Trainer;
using partitioner::kImage;
using partitioner::Network;
using partitioner::Partition;

constexpr Index kScaledBatch = 4;
constexpr Index kScaledPasses = 2;
constexpr Index kScaledSteps = 35;

Network scaled_detector() {
  Network network;
  network.image = {3, 48, 40};
  add_layer(network,
            partitioner::Convolution{
                .filters = 8, .size = 3, .stride = 4, .padding = 1, .batch_normalize = true},
            {kImage});
  add_layer(network,
            partitioner::Convolution{.filters = 12,
                                     .size = 3,
                                     .padding = 1,
                                     .batch_normalize = true,
                                     .activation = partitioner::Activation::Leaky},
            {0});
  add_layer(network,
            partitioner::Convolution{
                .filters = 14, .size = 1, .activation = partitioner::Activation::Linear},
            {1});
  add_layer(network,
            partitioner::YoloHead{.classes = 2, .anchors = {{10, 14}, {23, 27}}, .mask = {0, 1}},
            {2});
  return network;
}

struct ScaledRun {
  std::vector<double> losses;
  std::vector<partitioner::InputSize> sizes;  // those that are not the configured one
  std::vector<float> values;                  // of all parameters, whole, on rank 0
};

ScaledRun scaled_run(const Network& network,
                     const Partition& partition,
                     const Communicator& communicator,
                     bool tests_between = false) {
  constexpr Index kPass = kScaledBatch / kScaledPasses;
  const partitioner::Plan plan = make_plan(network, partition, kPass);
  engine::TrainerOptions options;
  options.training.batch = kScaledBatch;
  options.training.subdivisions = kScaledPasses;
  options.seed = 5;
  options.sizes = std::make_shared<const SizedPlans>(
      network,
      partition,
      kPass,
      engine::InputSchedule(partitioner::InputSizes(size_of(network.image), 1.4, 4), 5));
  Trainer trainer(network, plan, communicator, options);
  DataLoader loader(engine::RandomPictures{3}, plan, communicator);
  ScaledRun run;
  for (Index step = 0; step < kScaledSteps; ++step) {
    const engine::StepResult result = trainer.step(loader);
    run.losses.push_back(result.loss);
    if (result.size) {
      run.sizes.push_back(*result.size);
    }
    if (tests_between && step % 4 == 0) {
      trainer.use_configured_size();
      CHECK(trainer.has_configured_size());
      CHECK(trainer.execution().network().image == network.image);
    }
  }
  auto& set = trainer.execution().parameters();
  for (const auto& parameter : set.all()) {
    const std::vector<float> whole = set.gather(parameter, parameter.values.data());
    run.values.insert(run.values.end(), whole.begin(), whole.end());
  }
  return run;
}

Partition scaled_tiles(const Network& network, int ranks) {
  return tests::partition_of(
      network, ranks, {{0, 1}, {2, 3}}, {tests::grid(ranks), tests::images_cut(ranks)});
}

TEST_CASE("steps with inputs of several sizes learn the same on any ranks") {
  const Communicator world = Communicator::world();
  const Network network = scaled_detector();
  const ScaledRun alone = scaled_run(network, single_tile(network), Communicator::self());
  const ScaledRun together = scaled_run(network, scaled_tiles(network, world.size()), world);
  CHECK(together.sizes == alone.sizes);
  CHECK(together.sizes.size() >= 10);
  CHECK(std::adjacent_find(alone.sizes.begin(), alone.sizes.end(), std::not_equal_to<>()) !=
        alone.sizes.end());
  for (std::size_t step = 0; step < alone.losses.size(); ++step) {
    CHECK(std::abs(together.losses[step] - alone.losses[step]) < 1e-3 * alone.losses[step]);
  }
  if (world.rank() == 0) {
    double difference = 0;
    for (std::size_t i = 0; i < alone.values.size(); ++i) {
      difference = std::max<double>(difference, std::abs(together.values[i] - alone.values[i]));
    }
    CHECK(difference < 1e-3);
  }
}

TEST_CASE("a test at the configured size between two steps changes no bit of what is learnt") {
  const Communicator world = Communicator::world();
  const Network network = scaled_detector();
  const Partition partition = scaled_tiles(network, world.size());
  const ScaledRun plain = scaled_run(network, partition, world);
  const ScaledRun tested = scaled_run(network, partition, world, true);
  CHECK(tested.losses == plain.losses);
  CHECK(tested.values == plain.values);
}

}  // namespace
