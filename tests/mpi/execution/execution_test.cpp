// What holds while a plan is executed: copies of a cell, losses, dropout, runs one after the other.

#include "engine/execution/execution.h"

#include <cstring>
#include <numeric>
#include <vector>

#include "tests/support/cuts.h"
#include "tests/support/random_network.h"
#include "tests/support/reduced_gradients.h"
#include <doctest/doctest.h>

#include "engine/base/random.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Communicator;
using engine::Execution;
using engine::Pass;
using partitioner::Activation;
using partitioner::kImage;
using partitioner::Network;
using partitioner::Partition;
using partitioner::Plan;

// On rank 0; empty elsewhere.
template <class T>
std::vector<T> random_image(const Network& network, Index batch, const Communicator& world) {
  std::vector<T> image(
      world.rank() == 0 ? static_cast<std::size_t>(whole_map(network, kImage, batch).volume()) : 0);
  for (std::size_t i = 0; i < image.size(); ++i) {
    image[i] = static_cast<T>(engine::random_normal(1, i));
  }
  return image;
}

// All of a run that a test may ask for.
template <class T>
struct Run {
  const Network& network;
  Plan plan;
  Communicator communicator;
  Execution<T> execution;

  Run(const Network& of,
      const Partition& partition,
      Index batch,
      const Communicator& on,
      bool keep_maps = true)
      : network(of),
        plan(make_plan(of, partition, batch)),
        communicator(on),
        execution(network, plan, communicator, {.image_gradient = true, .keep_maps = keep_maps}) {
    execution.parameters().initialize(3);
    execution.scatter_image(random_image<T>(network, batch, communicator));
  }
};

TEST_CASE("all copies of a cell hold the same bits") {
  const Communicator world = Communicator::world();
  for (std::uint64_t seed = 0; seed < 25; ++seed) {
    const tests::RandomCase random = tests::random_case(seed, world.size(), {});
    Run<float> run(random.network, random.partition, random.batch, world);
    run.execution.forward({});
    for (int map = 0; map < random.network.size(); ++map) {
      const Region whole = whole_map(random.network, map, random.batch);
      std::vector<float> owners = run.execution.gather_map(map);
      owners.resize(static_cast<std::size_t>(whole.volume()));
      const auto everywhere = world.gather_all(
          engine::bytes_of(static_cast<const float*>(owners.data()), whole.volume()));
      engine::Tensor<float> expected(whole);
      std::memcpy(owners.data(), everywhere[0].data(), everywhere[0].size());
      copy_in(owners.data(), whole, expected.view());
      const Region& computed = run.plan.tile(map, world.rank()).computed;
      std::vector<float> mine(static_cast<std::size_t>(computed.volume()));
      std::vector<float> theirs(mine.size());
      copy_out(engine::View<const float>(run.execution.map(map)), computed, mine.data());
      copy_out(engine::View<const float>(expected.view()), computed, theirs.data());
      CHECK_MESSAGE(mine == theirs, "seed ", seed, " map ", map);
    }
  }
}

Network small_classifier() {
  Network network;
  network.image = {3, 9, 8};
  add_layer(network,
            partitioner::Convolution{.filters = 6,
                                     .size = 3,
                                     .padding = 1,
                                     .batch_normalize = true,
                                     .activation = Activation::Leaky},
            {kImage});
  add_layer(network, partitioner::Dropout{0.4}, {0});
  add_layer(network,
            partitioner::Convolution{
                .filters = 5, .size = 3, .stride = 2, .padding = 1, .activation = Activation::Tanh},
            {1});
  add_layer(network, partitioner::AvgPool{}, {2});
  add_layer(network, partitioner::Connected{4, false, Activation::Linear}, {3});
  add_layer(network, partitioner::Softmax{}, {4});
  add_layer(network, partitioner::Cost{}, {5});
  return network;
}

// Tiles, then images cut unevenly; the cost on other ranks than the softmax.
Partition handed_over(const Network& network, int ranks) {
  const tests::Cuts images{tests::small_pieces(ranks, 1, 5), {}, {}, {}};
  return tests::partition_of(network,
                             ranks,
                             {{0, 1}, {2, 2}, {3, 5}, {6, 6}},
                             {tests::grid(ranks), tests::grid(ranks), images, {}});
}

void check_dropout(const Network& network, const Partition& partition, const Communicator& world) {
  Run<double> tiled(network, partition, 5, world);
  Pass pass;
  pass.batch_norm = engine::BatchNormMode::Frozen;
  pass.seed = 9;
  std::vector<double> previous;
  for (Index step = 0; step < 3; ++step) {
    pass.step = step;
    tiled.execution.forward(pass);
    const std::vector<double> found = tiled.execution.gather_map(1);
    if (world.rank() == 0) {
      Run<double> alone(network, single_tile(network), 5, Communicator::self());
      alone.execution.forward(pass);
      CHECK(found == alone.execution.gather_map(1));
      CHECK(found != previous);
      previous = found;
    }
  }
}

TEST_CASE("dropout drops the same cells whatever the partition, and others in another step") {
  const Communicator world = Communicator::world();
  const Network network = small_classifier();
  const int ranks = world.size();
  check_dropout(network, handed_over(network, ranks), world);
  for (const tests::Cuts& cuts : {tests::images_cut(ranks), tests::channels_cut(ranks)}) {
    check_dropout(
        network,
        tests::partition_of(network, ranks, {{0, 1}, {2, 6}}, {cuts, tests::images_cut(ranks)}),
        world);
  }
}

// The loss over all ranks, and on rank 0 the gradient of the first layer's weights.
template <class T>
std::pair<double, std::vector<T>> loss_and_gradient(Run<T>& run, const engine::Targets& targets) {
  Pass pass;
  pass.seed = 9;
  pass.targets = &targets;
  pass.loss_scale = 1.0 / static_cast<double>(targets.size());
  run.execution.forward(pass);
  run.execution.clear_output_gradient();
  run.execution.parameters().clear_gradients();
  run.execution.backward(pass);
  tests::reduce_gradients(run.execution.parameters(), pass.batch_norm);
  const double mine = run.execution.owned_loss(pass).total();
  double loss = 0;
  for (const auto& bytes : run.communicator.gather_all(engine::bytes_of(&mine, 1))) {
    double share = 0;
    std::memcpy(&share, bytes.data(), sizeof(share));
    loss += share;
  }
  const auto& weight = run.execution.parameters().all().front();
  return {loss, run.execution.parameters().gather(weight, weight.gradient.data())};
}

TEST_CASE("each image counts once in the loss, however unevenly images are cut, or classes") {
  const Communicator world = Communicator::world();
  const Network network = small_classifier();
  engine::Targets targets = engine::class_targets({0, 3, 1, 0, 2});
  targets[3].reset();  // a place without a picture
  Partition by_images = handed_over(network, world.size());
  Partition by_classes = by_images;
  by_classes.groups[2].images = {};
  by_classes.groups[2].channels = tests::small_pieces(world.size(), 1, 4);
  for (const Partition& partition : {by_images, by_classes}) {
    Run<double> tiled(network, partition, 5, world);
    const auto found = loss_and_gradient(tiled, targets);
    if (world.rank() == 0) {
      Run<double> alone(network, single_tile(network), 5, Communicator::self());
      const auto expected = loss_and_gradient(alone, targets);
      CHECK(found.first == doctest::Approx(expected.first).epsilon(1e-12));
      for (std::size_t i = 0; i < expected.second.size(); ++i) {
        CHECK(found.second[i] == doctest::Approx(expected.second[i]).epsilon(1e-10));
      }
    }
  }
}

TEST_CASE("a second step on the same buffers gives the same bits as the first") {
  const Communicator world = Communicator::world();
  const Network network = small_classifier();
  const engine::Targets targets = engine::class_targets({0, 3, 1, 1, 2});
  Run<float> run(network, handed_over(network, world.size()), 5, world);
  const auto first = loss_and_gradient(run, targets);
  const auto second = loss_and_gradient(run, targets);
  CHECK(first.first == second.first);
  CHECK(first.second == second.second);
}

}  // namespace

// What a step makes of random values: output, gradient of the image, gradients of all parameters.
std::vector<std::vector<float>> results_of(Run<float>& run) {
  const int last = run.network.size() - 1;
  run.execution.forward({});
  std::vector<std::vector<float>> results{run.execution.gather_map(last)};
  const Region whole = whole_map(run.network, last, run.plan.batch);
  std::vector<float> gradient(
      run.communicator.rank() == 0 ? static_cast<std::size_t>(whole.volume()) : 0);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    gradient[i] = static_cast<float>(engine::random_normal(2, i));
  }
  run.execution.parameters().clear_gradients();
  run.execution.clear_output_gradient();
  run.execution.scatter_output_gradient(gradient);
  run.execution.backward({});
  tests::reduce_gradients(run.execution.parameters(), {});
  results.push_back(run.execution.gather_gradient(kImage));
  for (const auto& parameter : run.execution.parameters().all()) {
    const bool learnt = partitioner::is_learnt(*parameter.plan);
    results.push_back(run.execution.parameters().gather(
        parameter, learnt ? parameter.gradient.data() : parameter.values.data()));
  }
  return results;
}

TEST_CASE("maps that share memory, are fused with a pool or come back later change no bit") {
  const Communicator world = Communicator::world();
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const tests::RandomCase random = tests::random_case(seed, world.size(), {});
    Run<float> apart(random.network, random.partition, random.batch, world);
    Run<float> shared(random.network, random.partition, random.batch, world, false);
    const auto expected = results_of(apart);
    for (int step = 0; step < 2; ++step) {
      shared.execution.parameters().initialize(3);
      shared.execution.scatter_image(random_image<float>(random.network, random.batch, world));
      CHECK_MESSAGE(results_of(shared) == expected, "seed ", seed, " step ", step);
    }
  }
}
