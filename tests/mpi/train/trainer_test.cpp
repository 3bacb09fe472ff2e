// Steps of training on several ranks: values travel from one into the next.

#include "engine/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "tests/support/cuts.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::BatchNormMode;
using engine::Communicator;
using engine::DataLoader;
using engine::Parameter;
using engine::ParameterSet;
using engine::RandomPictures;
using engine::Trainer;
using partitioner::Compression;
using partitioner::kImage;
using partitioner::Network;
using partitioner::Partition;

// Layers with normalisation and without, and a loss; tiles, then images.
Network classifier() {
  Network network;
  network.image = {3, 12, 10};
  add_layer(
      network,
      partitioner::Convolution{.filters = 8, .size = 3, .padding = 1, .batch_normalize = true},
      {kImage});
  add_layer(network, partitioner::Convolution{.filters = 20, .size = 3, .padding = 1}, {0});
  add_layer(network, partitioner::AvgPool{}, {1});
  add_layer(network, partitioner::Connected{.outputs = 4}, {2});
  add_layer(network, partitioner::Softmax{}, {3});
  return network;
}

Partition tiles_then_images(const Network& network, int ranks) {
  return tests::partition_of(
      network, ranks, {{0, 1}, {2, 4}}, {tests::grid(ranks), tests::images_cut(ranks)});
}

engine::TrainerOptions options(Index batch, BatchNormMode mode) {
  partitioner::TrainingOptions training;
  training.batch = batch;
  training.subdivisions = 2;
  return {training, mode, 5};
}

// Of all parameters, whole, on rank 0.
std::vector<float> values_of(Trainer& trainer) {
  std::vector<float> all;
  ParameterSet<float>& set = trainer.execution().parameters();
  for (const Parameter<float>& parameter : set.all()) {
    const std::vector<float> whole = set.gather(parameter, parameter.values.data());
    all.insert(all.end(), whole.begin(), whole.end());
  }
  return all;
}

// Whether this rank holds what the owners have, to the bit.
bool copies_are_alike(Trainer& trainer, const Communicator& world) {
  std::vector<float> all = values_of(trainer);
  const auto bytes =
      world.gather_all(engine::bytes_of(static_cast<const float*>(all.data()), std::ssize(all)));
  all.resize(bytes[0].size() / sizeof(float));
  std::memcpy(all.data(), bytes[0].data(), bytes[0].size());
  const float* whole = all.data();
  bool alike = true;
  for (const Parameter<float>& parameter : trainer.execution().parameters().all()) {
    const float* values = parameter.values.data();
    alike =
        alike && std::equal(values, values + parameter.values.size(), whole + parameter.held.begin);
    whole += parameter.size();
  }
  return alike;
}

TEST_CASE("after steps of training all ranks hold the same bits") {
  const Communicator world = Communicator::world();
  const Network network = classifier();
  constexpr Index kBatch = 4;
  for (const Compression& compression : {Compression::Exact, Compression::Half}) {
    for (const BatchNormMode mode :
         {BatchNormMode::Sync, BatchNormMode::Frozen, BatchNormMode::PerTile}) {
      Partition partition = tiles_then_images(network, world.size());
      partition.gradient_reduction = {.bucket_bytes = 1, .compression = compression};
      const partitioner::Plan plan = make_plan(network, partition, kBatch / 2);
      Trainer trainer(network, plan, world, options(kBatch, mode));
      DataLoader pictures(RandomPictures{}, plan, world);
      for (int step = 0; step < 3; ++step) {
        (void)trainer.step(pictures);
      }
      CHECK(copies_are_alike(trainer, world));
    }
  }
}

TEST_CASE("a weight of any rank that is not finite is found on all") {
  const Communicator world = Communicator::world();
  const Network network = classifier();
  constexpr Index kBatch = 4;
  const partitioner::Plan plan =
      make_plan(network, tiles_then_images(network, world.size()), kBatch / 2);
  Trainer trainer(network, plan, world, options(kBatch, BatchNormMode::Sync));
  CHECK_NOTHROW(trainer.expect_finite_parameters());
  if (world.rank() == world.size() - 1) {
    trainer.execution().parameters().all().front().values[0] = INFINITY;
  }
  CHECK_THROWS_AS(trainer.expect_finite_parameters(), engine::Diverged);
}

TEST_CASE("steps have the same bits whether somebody looks at the values in between or not") {
  const Communicator world = Communicator::world();
  const Network network = classifier();
  constexpr Index kBatch = 4;
  Partition partition = tiles_then_images(network, world.size());
  partition.gradient_reduction.bucket_bytes = 1;
  const partitioner::Plan plan = make_plan(network, partition, kBatch / 2);
  std::vector<std::vector<float>> results;
  for (const bool looks : {false, true}) {
    Trainer trainer(network, plan, world, options(kBatch, BatchNormMode::Sync));
    DataLoader pictures(RandomPictures{}, plan, world);
    for (int step = 0; step < 4; ++step) {
      (void)trainer.step(pictures);
      if (looks) {
        (void)values_of(trainer);
      }
    }
    results.push_back(values_of(trainer));
  }
  CHECK(results[0] == results[1]);
}

// What one step changes of what is learnt, with momentum and decay of 0 and a rate of 1, so the
// gradient; on rank 0.
std::vector<double> gradient_of_step(const Network& network,
                                     const partitioner::Plan& plan,
                                     const Communicator& communicator) {
  engine::TrainerOptions plain = options(4, BatchNormMode::Sync);
  plain.training.learning_rate = 1;
  plain.training.momentum = 0;
  plain.training.decay = 0;
  Trainer trainer(network, plan, communicator, plain);
  DataLoader pictures(RandomPictures{}, plan, communicator);
  std::vector<double> gradient;
  const auto learnt = [&trainer] {
    std::vector<float> all;
    ParameterSet<float>& set = trainer.execution().parameters();
    for (const Parameter<float>& parameter : set.all()) {
      const std::vector<float> whole = set.gather(parameter, parameter.values.data());
      all.insert(
          all.end(), whole.begin(), is_learnt(*parameter.plan) ? whole.end() : whole.begin());
    }
    return all;
  };
  const std::vector<float> before = learnt();
  (void)trainer.step(pictures);
  const std::vector<float> after = learnt();
  for (std::size_t i = 0; i < before.size(); ++i) {
    gradient.push_back(static_cast<double>(before[i]) - static_cast<double>(after[i]));
  }
  return gradient;
}

double norm_of(const std::vector<double>& vector) {
  return std::sqrt(std::inner_product(vector.begin(), vector.end(), vector.begin(), 0.0));
}

TEST_CASE("gradients are clipped by the norm of all, whoever owns them, and shorter ones are not") {
  const Communicator world = Communicator::world();
  Network network = classifier();
  for (const auto states :
       {partitioner::OptimizerStates::Sharded, partitioner::OptimizerStates::Replicated}) {
    for (const Index bytes : {Index{1}, Index{1} << 20U}) {
      Partition partition = tiles_then_images(network, world.size());
      partition.gradient_reduction = {.bucket_bytes = bytes, .optimizer = states};
      const auto gradient = [&](double most) {
        network.max_gradient_norm = most;
        const partitioner::Plan plan = make_plan(network, partition, 2);
        return gradient_of_step(network, plan, world);
      };
      const std::vector<double> whole = gradient(0);
      const double norm = norm_of(whole);
      const std::vector<double> clipped = gradient(0.125);
      CHECK(gradient(1e6) == whole);
      if (world.rank() == 0) {
        REQUIRE(norm > 0.25);
        CHECK(norm_of(clipped) == doctest::Approx(0.125).epsilon(1e-4));
        for (std::size_t i = 0; i < whole.size(); ++i) {
          CHECK(clipped[i] == doctest::Approx(whole[i] * 0.125 / norm).epsilon(1e-3).scale(0.01));
        }
      }
    }
  }
}

TEST_CASE("a layer that is held has no part in the norm by which gradients are clipped") {
  const Communicator world = Communicator::world();
  Network network = classifier();
  network.layers[1].learning.steps_held = 5;
  network.max_gradient_norm = 0.125;
  const partitioner::Plan plan = make_plan(network, tiles_then_images(network, world.size()), 2);
  const std::vector<double> clipped = gradient_of_step(network, plan, world);
  if (world.rank() == 0) {
    CHECK(norm_of(clipped) == doctest::Approx(0.125).epsilon(1e-4));
  }
}

// Ranks with less to do, or nothing, wait there.
TEST_CASE("waiting for the loss of another rank is time spent on exchanging") {
  const Communicator world = Communicator::world();
  Network network;
  network.image = {2, 3, 3};
  add_layer(network, partitioner::Connected{.outputs = 4}, {kImage});
  add_layer(network, partitioner::Softmax{}, {0});
  const Partition partition =
      tests::partition_of(network, world.size(), {{0, 1}}, {tests::images_cut(world.size())});
  const partitioner::Plan plan = make_plan(network, partition, world.size());
  Trainer trainer(network, plan, world, options(2 * world.size(), BatchNormMode::Sync));
  DataLoader pictures(RandomPictures{}, plan, world);
  world.barrier();
  if (world.rank() == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }
  const double waited_s = trainer.step(pictures).times.exchanges.statistics_s;
  if (world.rank() > 0) {  // how long it took to leave the barrier is not known
    CHECK(waited_s > 0.1);
  }
}

// Averages of all parameters, whole, on rank 0; and whether all ranks hold the same.
struct Averages {
  std::vector<float> values;
  bool alike = true;
};

Averages averages_of(Trainer& trainer, const Communicator& world) {
  Averages averages;
  trainer.with_averages([&] {
    averages.values = values_of(trainer);
    averages.alike = copies_are_alike(trainer, world);
  });
  return averages;
}

TEST_CASE("averages are those of one device, and training goes on as if nobody had used them") {
  const Communicator world = Communicator::world();
  const Communicator self = Communicator::self();
  const Network network = classifier();
  constexpr Index kBatch = 4;
  engine::TrainerOptions averaging = options(kBatch, BatchNormMode::Sync);
  averaging.training.ema_decay = 0.9998;
  averaging.training.learning_rate = 0.05;
  engine::TrainerOptions plain = averaging;
  plain.training.ema_decay = 0;
  Partition tiles = tiles_then_images(network, world.size());
  tiles.gradient_reduction.bucket_bytes = 1;
  for (const auto states :
       {partitioner::OptimizerStates::Sharded, partitioner::OptimizerStates::Replicated}) {
    tiles.gradient_reduction.optimizer = states;
    const partitioner::Plan plan = make_plan(network, tiles, kBatch / 2);
    const partitioner::Plan one = make_plan(network, single_tile(network), kBatch / 2);
    Trainer trainer(network, plan, world, averaging);
    Trainer without(network, plan, world, plain);
    Trainer alone(network, one, self, averaging);
    DataLoader pictures(RandomPictures{}, plan, world);
    DataLoader others(RandomPictures{}, plan, world);
    DataLoader own(RandomPictures{}, one, self);
    CHECK(averages_of(trainer, world).values == values_of(trainer));
    for (int step = 0; step < 3; ++step) {
      (void)trainer.step(pictures);
      (void)without.step(others);
      (void)alone.step(own);
      const Averages averages = averages_of(trainer, world);
      const Averages expected = averages_of(alone, self);
      CHECK(averages.alike);
      CHECK(copies_are_alike(trainer, world));
      CHECK(values_of(trainer) == values_of(without));
      if (world.rank() == 0) {
        CHECK(averages.values != values_of(alone));
        for (std::size_t i = 0; i < expected.values.size(); ++i) {
          CHECK(averages.values[i] == doctest::Approx(expected.values[i]).epsilon(1e-4));
        }
      }
    }
    CHECK_THROWS_AS(trainer.with_averages([] { throw engine::AgreedError("a test that failed"); }),
                    engine::AgreedError);
    CHECK(values_of(trainer) == values_of(without));
  }
}

TEST_CASE("training may end with values on their way") {
  const Communicator world = Communicator::world();
  const Network network = classifier();
  const Partition partition = tiles_then_images(network, world.size());
  const partitioner::Plan plan = make_plan(network, partition, 2);
  for (int round = 0; round < 3; ++round) {
    Trainer trainer(network, plan, world, options(4, BatchNormMode::Sync));
    DataLoader pictures(RandomPictures{}, plan, world);
    (void)trainer.step(pictures);
  }
  CHECK(world.of_ranks(world.rank()).back() == world.size() - 1);
}

}  // namespace
