// Trains a small network on random pictures, on any number of ranks, each of which has some rows of
// every map: mpiexec.mpich -n 2 train. Exits 1 unless the loss has fallen.

#include <cstdio>

#include "engine/comm/mpi_session.h"
#include "engine/train/training_run.h"

using namespace tessera;

int main(int argc, char** argv) {
  const engine::MpiSession session(argc, argv);
  const auto world = engine::Communicator::world();

  partitioner::Network network{.image = {.channels = 1, .rows = 16, .cols = 16}};
  const partitioner::Convolution convolution{.filters = 8, .size = 3, .padding = 1};
  add_layer(network, convolution, {partitioner::kImage});
  add_layer(network, partitioner::MaxPool{.size = 2, .stride = 2}, {0});
  add_layer(network, partitioner::Connected{.outputs = 2}, {1});
  add_layer(network, partitioner::Softmax{}, {2});

  const engine::TrainerOptions options{.training = {.batch = 8, .learning_rate = 0.01}};
  const auto partition = make_partition(network, {.grid_rows = world.size()});
  const auto plan = make_plan(network, partition, options.training.batch);
  engine::Trainer trainer(network, plan, world, options);
  engine::DataLoader pictures(engine::RandomPictures{.seed = 3}, plan, world);

  std::vector<double> losses;
  engine::TrainingRun run(trainer, pictures, {.last_step = 20});
  run.add({.step = [&](auto, const auto& result) { losses.push_back(result.loss); }});
  run.run();
  if (world.rank() == 0) {
    std::printf("%d ranks: loss %.4f, then %.4f\n", world.size(), losses.front(), losses.back());
  }
  return losses.back() < losses.front() / 2 ? 0 : 1;
}
