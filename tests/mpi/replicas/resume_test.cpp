// Training of replicas goes on from a checkpoint.

#include <optional>
#include <vector>

#include "tests/support/replica_training.h"
#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "engine/train/checkpoints/checkpoint.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Communicator;
using engine::TrainingState;
using partitioner::Compression;
using partitioner::Synchronisation;
using partitioner::SyncMode;
using tests::Settings;
using tests::Training;

using RankStates = TrainingState::RankStates;

// On rank 0, where files are.
class File {
 public:
  explicit File(const Communicator& world) {
    if (world.rank() == 0) {
      folder_.emplace();
    }
  }
  [[nodiscard]] std::filesystem::path path() const {
    return folder_ ? *folder_ / "checkpoint" : std::filesystem::path();
  }

 private:
  std::optional<tests::TemporaryFolder> folder_;
};

void save(const File& file, Training& training, const Communicator& world) {
  engine::Trainer& trainer = training.trainer();
  const auto common = trainer.common_model();
  save_checkpoint(file.path(),
                  {.step = trainer.steps_done(),
                   .seed = 5,
                   .model = "[net]\n",
                   .fingerprint = fingerprint(trainer.execution().network())},
                  trainer.execution().parameters(),
                  trainer.optimizer(),
                  trainer.rank_state(),
                  world);
}

RankStates load(const File& file, Training& training, const Communicator& world) {
  engine::Trainer& trainer = training.trainer();
  const TrainingState state = load_checkpoint(file.path(),
                                              trainer.execution().network(),
                                              trainer.execution().parameters(),
                                              trainer.optimizer(),
                                              trainer.rank_state(),
                                              world);
  trainer.resume_at(state.step, state.rank_states == RankStates::Restored);
  return state.rank_states;
}

TEST_CASE("replicas go on from a checkpoint with the same bits as without a pause") {
  const Communicator world = Communicator::world();
  if (tests::replicas_of(world) == 1) {
    return;
  }
  for (const auto& [sync, compression] : tests::ties()) {
    const Settings settings{
        .normalizes = true, .adam = true, .compression = compression, .post_local_steps = 3};
    const File file(world);
    std::vector<float> values;
    std::vector<float> common_values;
    {
      Training whole(sync, settings, world);
      whole.steps(5);
      save(file, whole, world);
      whole.steps(3);
      values = whole.values();
      common_values = whole.common_values();
    }
    Training resumed(sync, settings, world);
    CHECK(load(file, resumed, world) == RankStates::Restored);
    resumed.steps(3);
    INFO(to_text(sync), " ", to_text(compression));
    CHECK(resumed.values() == values);
    CHECK(resumed.common_values() == common_values);
  }
}

TEST_CASE("what compression has left of gradients is part of a checkpoint") {
  const Communicator world = Communicator::world();
  for (const Compression& compression : tests::kCompressions) {
    if (compression == Compression::Exact) {
      continue;
    }
    const Settings settings{.normalizes = true, .compression = compression};
    const File file(world);
    std::vector<float> values;
    {
      Training whole({}, settings, world);
      whole.steps(4);
      save(file, whole, world);
      whole.steps(2);
      values = whole.values();
    }
    Training resumed({}, settings, world);
    CHECK(load(file, resumed, world) ==
          (world.size() == 1 ? RankStates::None : RankStates::Restored));
    resumed.steps(2);
    INFO(to_text(compression));
    CHECK(resumed.values() == values);
  }
}

TEST_CASE("under another plan all replicas start from what they had in common") {
  const Communicator world = Communicator::world();
  const File file(world);
  Training gossip({SyncMode::Gossip, 0}, {}, world);
  gossip.steps(3);
  const std::vector<float> common = gossip.common_values();
  save(file, gossip, world);
  Training averaged({SyncMode::Local, 4}, {}, world);
  const RankStates states = load(file, averaged, world);
  CHECK(states == (tests::replicas_of(world) == 1 ? RankStates::None : RankStates::OfAnotherPlan));
  CHECK(averaged.common_values() == common);
  averaged.steps(1);
}

TEST_CASE("a checkpoint of replicas is that of one device for whoever reads it alone") {
  const Communicator world = Communicator::world();
  const File file(world);
  Training replicas({SyncMode::Local, 4}, {.normalizes = true}, world);
  replicas.steps(3);
  save(file, replicas, world);
  Training one_model({}, {.normalizes = true}, world);
  (void)load(file, one_model, world);
  CHECK(one_model.common_values() == replicas.common_values());
}

}  // namespace
