// Checkpoints know whole tensors, whatever the partition.

#include "engine/train/checkpoints/checkpoint.h"

#include <algorithm>
#include <optional>

#include "tests/support/cuts.h"
#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "engine/train/trainer.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Communicator;
using engine::Trainer;
using engine::TrainingState;
using partitioner::kImage;
using partitioner::Network;
using partitioner::Plan;

Network saved_classifier(Index outputs) {
  Network network;
  network.image = {3, 12, 10};
  add_layer(
      network,
      partitioner::Convolution{.filters = 8, .size = 3, .padding = 1, .batch_normalize = true},
      {kImage});
  add_layer(network, partitioner::AvgPool{}, {0});
  add_layer(network, partitioner::Connected{.outputs = outputs}, {1});
  add_layer(network, partitioner::Softmax{}, {2});
  return network;
}

engine::TrainerOptions saved_options(bool adam) {
  engine::TrainerOptions options;
  options.training.batch = 4;
  options.training.adam = adam;
  options.training.ema_decay = adam ? 0.99 : 0;
  options.seed = 5;
  return options;
}

TrainingState state_of(const Network& network, const Trainer& trainer) {
  return {.step = trainer.steps_done(),
          .seed = 5,
          .model = "[net]\n",
          .fingerprint = fingerprint(network),
          .images_seen = 4 * trainer.steps_done()};
}

// On rank 0, where files are.
class Files {
 public:
  explicit Files(const Communicator& world) {
    if (world.rank() == 0) {
      folder_.emplace();
    }
  }
  [[nodiscard]] std::filesystem::path operator/(const char* name) const {
    return folder_ ? *folder_ / name : std::filesystem::path();
  }
  [[nodiscard]] bool same(const char* one, const char* other) const {
    return !folder_ || tests::bytes_of(*folder_ / one) == tests::bytes_of(*folder_ / other);
  }

 private:
  std::optional<tests::TemporaryFolder> folder_;
};

void save(const std::filesystem::path& path,
          const Network& network,
          Trainer& trainer,
          const Communicator& world) {
  save_checkpoint(path,
                  state_of(network, trainer),
                  trainer.execution().parameters(),
                  trainer.optimizer(),
                  trainer.rank_state(),
                  world);
}

TrainingState load(const std::filesystem::path& path,
                   const Network& network,
                   Trainer& trainer,
                   const Communicator& world) {
  TrainingState state = load_checkpoint(path,
                                        network,
                                        trainer.execution().parameters(),
                                        trainer.optimizer(),
                                        trainer.rank_state(),
                                        world);
  trainer.resume_at(state.step, state.rank_states == TrainingState::RankStates::Restored);
  return state;
}

TEST_CASE("a checkpoint read under one partition and written under another has the same bytes") {
  const Communicator world = Communicator::world();
  const Network network = saved_classifier(4);
  const Files files(world);
  for (const bool adam : {false, true}) {
    const Plan tiles = make_plan(
        network, tests::partition_of(network, world.size(), {{0, 3}}, {tests::rows_cut(1)}), 4);
    const Plan images =
        make_plan(network,
                  tests::partition_of(network,
                                      world.size(),
                                      {{0, 0}, {1, 3}},
                                      {tests::grid(world.size()), tests::images_cut(world.size())}),
                  4);
    Trainer trainer(network, tiles, world, saved_options(adam));
    engine::DataLoader pictures(engine::RandomPictures{}, tiles, world);
    for (int step = 0; step < 3; ++step) {
      (void)trainer.step(pictures);
    }
    save(files / "one", network, trainer, world);
    Trainer other(network, images, world, saved_options(adam));
    const TrainingState state = load(files / "one", network, other, world);
    CHECK(state.step == 3);
    CHECK(state.seed == 5);
    CHECK(state.images_seen == 12);
    save(files / "other", network, other, world);
    CHECK(files.same("one", "other"));
  }
}

TEST_CASE("training goes on from a checkpoint with the same bits as without a pause") {
  const Communicator world = Communicator::world();
  const Network network = saved_classifier(4);
  const Files files(world);
  const Plan plan =
      make_plan(network,
                tests::partition_of(network,
                                    world.size(),
                                    {{0, 0}, {1, 3}},
                                    {tests::grid(world.size()), tests::images_cut(world.size())}),
                4);
  engine::DataLoader pictures(engine::RandomPictures{}, plan, world);
  {
    Trainer trainer(network, plan, world, saved_options(true));
    (void)trainer.step(pictures);
    save(files / "pause", network, trainer, world);
    (void)trainer.step(pictures);
    save(files / "without", network, trainer, world);
  }
  Trainer trainer(network, plan, world, saved_options(true));
  (void)load(files / "pause", network, trainer, world);
  (void)trainer.step(pictures);
  save(files / "with", network, trainer, world);
  CHECK(files.same("with", "without"));
}

TEST_CASE("averages that a checkpoint does not have begin with its values") {
  const Communicator world = Communicator::world();
  const Network network = saved_classifier(4);
  const Files files(world);
  const Plan plan = make_plan(
      network, tests::partition_of(network, world.size(), {{0, 3}}, {tests::rows_cut(1)}), 4);
  engine::TrainerOptions options = saved_options(false);
  Trainer without(network, plan, world, options);
  engine::DataLoader pictures(engine::RandomPictures{}, plan, world);
  (void)without.step(pictures);
  save(files / "without", network, without, world);
  options.training.ema_decay = 0.99;
  Trainer with(network, plan, world, options);
  (void)load(files / "without", network, with, world);
  const engine::ParameterSet<float>& parameters = with.execution().parameters();
  for (std::size_t i = 0; i < parameters.all().size(); ++i) {
    const engine::Parameter<float>& parameter = parameters.all()[i];
    const float* average = with.optimizer().states()[i].average.data();
    for (const Range& run : parameter.plan->owned[static_cast<std::size_t>(world.rank())]) {
      const float* values = parameter.values.data() + run.begin - parameter.held.begin;
      CHECK(std::equal(values, values + run.size(), average));
      average += run.size();
    }
  }
}

TEST_CASE("a checkpoint of another network, or without Adam's state, is refused on all ranks") {
  const Communicator world = Communicator::world();
  const Network network = saved_classifier(4);
  const Files files(world);
  const Plan plan = make_plan(
      network, tests::partition_of(network, world.size(), {{0, 3}}, {tests::rows_cut(1)}), 4);
  Trainer trainer(network, plan, world, saved_options(false));
  save(files / "momentum", network, trainer, world);
  Trainer adam(network, plan, world, saved_options(true));
  CHECK_THROWS_AS((void)load(files / "momentum", network, adam, world), engine::AgreedError);
  const Network wider = saved_classifier(5);
  const Plan wider_plan =
      make_plan(wider, tests::partition_of(wider, world.size(), {{0, 3}}, {tests::rows_cut(1)}), 4);
  Trainer other(wider, wider_plan, world, saved_options(false));
  CHECK_THROWS_AS((void)load(files / "momentum", wider, other, world), engine::AgreedError);
}

}  // namespace
