// A small training of replicas on all ranks, synchronised in any way.

#pragma once

#include <vector>

#include "tests/support/cuts.h"

#include "engine/train/trainer.h"

namespace tessera::tests {

using engine::Communicator;
using engine::Parameter;
using engine::ParameterSet;
using engine::Trainer;
using partitioner::Compression;
using partitioner::kImage;
using partitioner::Plan;
using partitioner::Synchronisation;
using partitioner::SyncMode;

inline constexpr Index kShare = 4;  // images of a replica in a step, two passes of two

[[nodiscard]] inline Network classifier(bool normalizes) {
  Network network;
  network.image = {3, 12, 10};
  add_layer(network,
            partitioner::Convolution{
                .filters = 8, .size = 3, .padding = 1, .batch_normalize = normalizes},
            {kImage});
  add_layer(network, partitioner::Convolution{.filters = 20, .size = 3, .padding = 1}, {0});
  add_layer(network, partitioner::AvgPool{}, {1});
  add_layer(network, partitioner::Connected{.outputs = 4}, {2});
  add_layer(network, partitioner::Softmax{}, {3});
  return network;
}

// Replicas of two tiles each where ranks are even in number, else of one rank.
[[nodiscard]] inline Partition partition_of_replicas(const Network& network,
                                                     int ranks,
                                                     const Synchronisation& sync) {
  const int tiles = ranks % 2 == 0 ? 2 : 1;
  const Partition one =
      partition_of(network, tiles, {{0, 1}, {2, 4}}, {rows_cut(tiles), images_cut(tiles)});
  return replicated(one, {ranks / tiles, sync}, kShare / 2);
}

[[nodiscard]] inline int replicas_of(const Communicator& world) {
  return world.size() % 2 == 0 ? world.size() / 2 : world.size();
}

struct Settings {
  bool normalizes = false;
  bool adam = false;
  float momentum = 0.9F;
  double learning_rate = 5e-2;  // without adam
  Compression compression = Compression::Exact;
  Index post_local_steps = 0;
};

[[nodiscard]] inline engine::TrainerOptions options(Index replicas, const Settings& settings) {
  partitioner::TrainingOptions training;
  training.batch = replicas * kShare;
  training.subdivisions = 2;
  training.learning_rate = settings.adam ? 1e-2 : settings.learning_rate;
  training.momentum = settings.momentum;
  training.adam = settings.adam;
  training.ema_decay = settings.adam ? 0.99 : 0;
  return {training, engine::BatchNormMode::Sync, 5, settings.post_local_steps};
}

// A training of replicas on all ranks, with all that must outlive it.
class Training {
 public:
  Training(const Synchronisation& sync, const Settings& settings, const Communicator& world)
      : network_(classifier(settings.normalizes)),
        plan_(plan_of(network_, sync, settings, world)),
        trainer_(network_, plan_, world, options(replicas_of(world), settings)),
        pictures_(engine::RandomPictures{}, plan_, world) {}

  engine::StepResult step() { return trainer_.step(pictures_); }
  void steps(Index count) {
    for (Index i = 0; i < count; ++i) {
      (void)step();
    }
  }
  [[nodiscard]] Trainer& trainer() { return trainer_; }

  // All that this rank holds.
  [[nodiscard]] std::vector<float> values() {
    std::vector<float> all;
    for (const Parameter<float>& parameter : trainer_.execution().parameters().all()) {
      const float* values = parameter.values.data();
      all.insert(all.end(), values, values + parameter.values.size());
    }
    return all;
  }

  // Of the model that all replicas have in common, whole, on rank 0.
  [[nodiscard]] std::vector<float> common_values() {
    const auto common = trainer_.common_model();
    std::vector<float> all;
    ParameterSet<float>& set = trainer_.execution().parameters();
    for (const Parameter<float>& parameter : set.all()) {
      const std::vector<float> whole = set.gather(parameter, parameter.values.data());
      all.insert(all.end(), whole.begin(), whole.end());
    }
    return all;
  }

 private:
  static Plan plan_of(const Network& network,
                      const Synchronisation& sync,
                      const Settings& settings,
                      const Communicator& world) {
    Partition partition = partition_of_replicas(network, world.size(), sync);
    partition.gradient_reduction = {.bucket_bytes = 1, .compression = settings.compression};
    return make_plan(network, partition, replicas_of(world) * kShare / 2);
  }

  Network network_;
  Plan plan_;
  Trainer trainer_;
  engine::DataLoader pictures_;
};

inline constexpr Synchronisation kApart[] = {{SyncMode::Local, 1},
                                             {SyncMode::Local, 3},
                                             {SyncMode::PostLocal, 2},
                                             {SyncMode::ParameterRank, 0},
                                             {SyncMode::ParameterRank, 1},
                                             {SyncMode::ParameterRank, 3},
                                             {SyncMode::Gossip, 0}};

inline constexpr Compression kCompressions[] = {Compression::Exact,
                                                Compression::Half,
                                                {.kind = Compression::Kind::TopK, .fraction = 0.1},
                                                {.kind = Compression::Kind::Sign},
                                                {.kind = Compression::Kind::LowRank, .rank = 2}};

// Each way with exact messages, and each kind of message in two ways.
struct Tie {
  Synchronisation sync;
  Compression compression;
};
[[nodiscard]] inline std::vector<Tie> ties() {
  std::vector<Tie> all;
  for (const Synchronisation& sync : kApart) {
    all.push_back({sync, Compression::Exact});
  }
  for (const Compression& compression : kCompressions) {
    if (compression != Compression::Exact) {
      all.push_back({{SyncMode::PostLocal, 2}, compression});
      all.push_back({{SyncMode::ParameterRank, 1}, compression});
    }
  }
  return all;
}

}  // namespace tessera::tests
