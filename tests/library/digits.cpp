// Trains a small network on any number of ranks, each of which has some rows of every map:
//   mpiexec.mpich -n 2 digits
// Prints the losses of the first step and of the last; exits 1 unless it has learnt something.

#include <cstdio>

#include "engine/comm/mpi_session.h"
#include "engine/train/feed.h"
#include "engine/train/trainer.h"

using namespace tessera;

// Pictures of two classes: bright above, and bright below.
engine::BatchSource pictures(const partitioner::MapShape& shape, partitioner::Index batch) {
  engine::BytePictures data{.shape = shape, .class_names = {"above", "below"}};
  for (int picture = 0; picture < 64; ++picture) {
    data.labels.push_back(picture % 2);
    for (partitioner::Index i = 0; i < shape.volume(); ++i) {
      const bool below = i >= shape.volume() / 2;
      data.pixels.push_back(
          static_cast<std::uint8_t>(below == (picture % 2 == 1) ? 150 + picture : i % 80));
    }
  }
  return {engine::Dataset(std::move(data), "made here", shape.channels),
          {.rules = {.input = shape, .picture = shape}, .batch = batch},
          "digits"};
}

int main(int argc, char** argv) {
  const engine::MpiSession session(argc, argv);
  const auto world = engine::Communicator::world();

  partitioner::Network network{.image = {.channels = 1, .rows = 16, .cols = 16}};
  add_layer(network,
            partitioner::Convolution{.filters = 8, .size = 3, .padding = 1},
            {partitioner::kImage});
  add_layer(network, partitioner::MaxPool{.size = 2, .stride = 2}, {0});
  add_layer(network, partitioner::Connected{.outputs = 2}, {1});
  add_layer(network, partitioner::Softmax{}, {2});

  const engine::TrainerOptions options{.training = {.batch = 8, .learning_rate = 0.05}};
  const auto partition = make_partition(network, {.grid_rows = world.size()});
  const auto plan = make_plan(network, partition, options.training.batch);
  engine::Feed feed(pictures(network.image, plan.batch), plan, world);
  engine::Trainer trainer(network, plan, world, options);

  const double first = trainer.step(feed).loss;
  double last = first;
  while (trainer.steps_done() < 40) {
    last = trainer.step(feed).loss;
  }
  if (world.rank() == 0) {
    std::printf("%d ranks: the loss was %.4f at first and is %.4f\n", world.size(), first, last);
  }
  return last < first / 2 ? 0 : 1;
}
