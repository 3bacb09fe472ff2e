// What a run keeps in memory that its plan leaves: decoded pictures, and maps of frozen layers.

#include <fmt/format.h>
#include <limits>

#include "engine/comm/agreement.h"
#include "engine/ops/loops/threads.h"
#include "engine/session/memory_needs.h"
#include "engine/session/training_setup.h"

namespace tessera::engine {

MemoryLeft TrainingSetup::memory_left() const {
  const auto planned = planned_memory(partition_);
  MemoryLeft left{.of_machine = memory_left_by(planned, communicator_),
                  .of_rank = std::numeric_limits<Index>::max()};
  if (const auto limit = request_.partition.memory_limit_bytes) {
    left.of_rank = *limit - planned[static_cast<std::size_t>(communicator_.rank())].total();
  }
  return left;
}

// Where a limit was given, a partition that follows may leave no memory beside it.
PictureCaching::Choice TrainingSetup::caching_choice(bool may_change_partition) const {
  MemoryLeft left = memory_left();
  if (request_.partition.memory_limit_bytes && may_change_partition &&
      request_.cache.place == PictureCacheRequest::Place::Automatic) {
    left.of_rank = 0;
  }
  return {
      .request = request_.cache, .run = request_.run, .parts = mapped_.has_value(), .left = left};
}

// What is measured to compare partitions is steps of one kind.
TrunkCaching::Choice TrainingSetup::trunk_caching_choice(bool may_change_partition) const {
  std::optional<std::string> obstacle;
  if (mapped_) {
    obstacle = "ranks have data of their own (--data-map)";
  } else if (sizes_) {
    obstacle = "inputs have several sizes";
  } else if (may_change_partition) {
    obstacle = "steps are compared, and would differ (choose, --rebalance)";
  } else if (!frozen_layers(model_.network).at_first.empty()) {
    obstacle = "more layers learn after the first steps (stopbackward)";
  }
  const Index variants = data_->varies(rules_) ? augment_variants() : 1;
  const bool plain_ones = variants > 0 && training_.no_mosaic_epochs > 0 &&
                          (rules_.augmentation.mosaic || rules_.augmentation.mixup);
  return {.request = request_.trunk_cache,
          .variants = variants,
          .training_images = data_->training_pictures() * variants * (plain_ones ? 2 : 1),
          .testing_images = needs_->tested_pictures,
          .obstacle = obstacle,
          .steps = trunk_steps(),
          .left = memory_left()};
}

// On rank 0, which says it: by the profile that there is, else of equal devices.
std::optional<TrunkSteps> TrainingSetup::trunk_steps() const {
  std::optional<TrunkSteps> steps;
  if (frozen_trunk(model_.network).empty()) {
    return steps;
  }
  on_root(communicator_, [&] {
    auto cluster = profiled_cluster(request_.partition, plan_.ranks);
    if (!cluster && !profiled_devices(request_.partition)) {
      cluster = described_cluster(request_.partition, plan_.ranks, {});
    }
    if (cluster) {
      steps = predicted_trunk_steps(
          request_.partition, model_.network, workload(), partition_, plan_, *cluster);
    }
  });
  return steps;
}

std::string TrainingSetup::trunk_identity(const TrainingRecord& record,
                                          const Preparation& preparation) const {
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n",
                     environment_.program_version,
                     fingerprint(model_.network),
                     record.data_digest,
                     to_json(preparation),
                     threads(),
                     record.augment_variants == 0 ? "" : to_json(record) + std::to_string(seed_));
}

}  // namespace tessera::engine
