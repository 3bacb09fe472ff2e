#include "engine/train/copy_equality.h"

#include "tests/support/cuts.h"
#include <doctest/doctest.h>

#include "engine/train/trainer.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Communicator;
using engine::DataLoader;
using engine::RandomPictures;
using engine::Trainer;
using engine::unequal_copies;
using partitioner::kImage;

// Its convolutions are held whole by all ranks.
partitioner::Network copied_network() {
  partitioner::Network network;
  network.image = {3, 12, 10};
  add_layer(network, partitioner::Convolution{.filters = 8, .size = 3, .padding = 1}, {kImage});
  add_layer(network, partitioner::Convolution{.filters = 4, .size = 3, .padding = 1}, {0});
  add_layer(network, partitioner::AvgPool{}, {1});
  add_layer(network, partitioner::Softmax{}, {2});
  return network;
}

}  // namespace

TEST_CASE("copies of parameters are equal after steps, and one that is damaged is found on all") {
  const Communicator world = Communicator::world();
  const partitioner::Network network = copied_network();
  const partitioner::Partition partition =
      tests::partition_of(network,
                          world.size(),
                          {{0, 1}, {2, 3}},
                          {tests::grid(world.size()), tests::images_cut(world.size())});
  const partitioner::Plan plan = make_plan(network, partition, 4);
  partitioner::TrainingOptions training;
  training.batch = 4;
  Trainer trainer(network, plan, world, {training, engine::BatchNormMode::Sync, 5});
  DataLoader pictures(RandomPictures{}, plan, world);
  for (int step = 0; step < 2; ++step) {
    (void)trainer.step(pictures);
  }
  CHECK(!unequal_copies(trainer.execution()));

  const int damaged = world.size() - 1;
  auto& parameters = trainer.execution().parameters().all();
  std::size_t place = 0;
  while (engine::parameter_name(*parameters[place].plan) != "layers.1.weight") {
    ++place;
  }
  if (world.rank() == damaged) {
    parameters[place].values[5] += 1e-3F;
  }
  const auto found = unequal_copies(trainer.execution());
  CHECK(found.has_value() == (world.size() > 1));
  if (found) {
    CHECK(found->parameter == "layers.1.weight");
    CHECK(found->parameters == 1);
    CHECK(found->lowest < damaged);  // the first rank may have no cell of that layer
    CHECK(found->ranks == std::vector<int>{damaged});
  }
}
