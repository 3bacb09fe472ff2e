// Training whose convolutions are held whole by all ranks, and a copy that is damaged on one of
// them.

#pragma once

#include "tests/support/cuts.h"

#include "engine/train/trainer.h"

namespace tessera::tests {

inline partitioner::Network copied_network() {
  partitioner::Network network;
  network.image = {3, 12, 10};
  add_layer(network,
            partitioner::Convolution{.filters = 8, .size = 3, .padding = 1},
            {partitioner::kImage});
  add_layer(network, partitioner::Convolution{.filters = 4, .size = 3, .padding = 1}, {0});
  add_layer(network, partitioner::AvgPool{}, {1});
  add_layer(network, partitioner::Softmax{}, {2});
  return network;
}

// Rows of images to its convolutions, whole images from there on.
class TrainingWithCopies {
 public:
  explicit TrainingWithCopies(const engine::Communicator& world)
      : plan_(make_plan(network_,
                        partition_of(network_,
                                     world.size(),
                                     {{0, 1}, {2, 3}},
                                     {grid(world.size()), images_cut(world.size())}),
                        kImages)),
        trainer_(network_, plan_, world, {options(), engine::BatchNormMode::Sync, 5}),
        pictures_(engine::RandomPictures{}, plan_, world) {}

  void step() { (void)trainer_.step(pictures_); }
  [[nodiscard]] engine::Execution<float>& execution() { return trainer_.execution(); }

  // One of this rank's copies, that of "layers.1.weight".
  void damage() {
    for (auto& parameter : trainer_.execution().parameters().all()) {
      if (engine::parameter_name(*parameter.plan) == "layers.1.weight") {
        parameter.values[5] += 1e-3F;
      }
    }
  }

 private:
  static constexpr Index kImages = 4;
  static partitioner::TrainingOptions options() {
    partitioner::TrainingOptions training;
    training.batch = kImages;
    return training;
  }

  partitioner::Network network_ = copied_network();
  partitioner::Plan plan_;
  engine::Trainer trainer_;
  engine::DataLoader pictures_;
};

}  // namespace tessera::tests
