// What a training run is made of before its first step, as it is asked for: the model,
// the data set, the partition and its plan, and how pictures are prepared.
//
// All ranks make it together, and everything here is the same on all of them but for what a rank
// has of the data; errors are AgreedErrors.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/data/batch/batch.h"
#include "engine/session/data_needs.h"
#include "engine/session/data_setup.h"
#include "engine/session/mapped_data.h"
#include "engine/session/multi_scale.h"
#include "engine/session/picture_caching.h"
#include "engine/session/planning.h"
#include "engine/session/run_environment.h"
#include "engine/session/training_request.h"
#include "engine/session/trunk_caching.h"
#include "engine/train/checkpoints/preparation.h"
#include "engine/train/checkpoints/training_record.h"
#include "engine/train/training_phase.h"
#include "engine/train/training_run.h"
#include "partitioner/cfg/model_file.h"
#include "partitioner/network/frozen_layers.h"
#include "partitioner/plan/plan.h"
#include "partitioner/text/plan_report.h"

namespace tessera::engine {

class PartitionChooser;

class TrainingSetup {
 public:
  // With a chooser, it says which partition training begins with; null: the request does. Tells the
  // observer what is not exact, and finds out whether memory suffices. All must outlive it.
  TrainingSetup(const TrainingRequest& request,
                const RunEnvironment& environment,
                const Communicator& communicator,
                const SessionObserver& observer,
                PartitionChooser* chooser);

  [[nodiscard]] const partitioner::ModelFile& model() const { return model_; }
  // As it learns in the end: see phase_in().
  [[nodiscard]] const partitioner::Network& network() const { return model_.network; }
  [[nodiscard]] const partitioner::TrainingOptions& training() const { return training_; }
  [[nodiscard]] std::uint64_t seed() const { return seed_; }
  // Of each picture; 0: another one in each epoch.
  [[nodiscard]] Index augment_variants() const;
  // How pictures were prepared for the weights that training begins with; nothing without any.
  [[nodiscard]] const std::optional<Preparation>& before() const { return before_; }
  [[nodiscard]] const RenderingRules& rules() const { return rules_; }
  // With what this run trains so many pictures, and the one that it goes on from did, if any.
  [[nodiscard]] TrainingRecord record(Index pictures, const std::string& data_digest) const;
  [[nodiscard]] const std::optional<TrainingRecord>& record_before() const {
    return record_before_;
  }
  // Sync where no layer takes batch statistics, whatever is asked for.
  [[nodiscard]] BatchNormMode batch_norm() const;

  // That training begins with.
  [[nodiscard]] const partitioner::Partition& partition() const { return partition_; }
  [[nodiscard]] const partitioner::Plan& plan() const { return plan_; }
  // What is trained by a partition in a step of the run.
  [[nodiscard]] PhasePlan phase_in(Index step, const partitioner::Partition& partition) const;
  // To begin with, by the partition() of training; once, plan() is gone then.
  [[nodiscard]] PhasePlan first_phase_in(Index step);

  // Of multi-scale training; nothing where the input has one size.
  [[nodiscard]] const std::optional<partitioner::InputSizes>& sizes() const { return sizes_; }
  // What each rank takes of memory by a partition, in those steps of a run that take the most; of
  // multi-scale training at the largest size.
  [[nodiscard]] std::vector<partitioner::MemoryUse> planned_memory(
      const partitioner::Partition& partition) const;
  // What a user has to know of it, with a line break; empty without it. `predicted_s`: of a step,
  // on average.
  [[nodiscard]] std::string described_sizes(const std::optional<double>& predicted_s) const;

  // Null without a data map.
  [[nodiscard]] MappedData* mapped() { return mapped_ ? &*mapped_ : nullptr; }
  // What the data set takes of this rank's memory before it is opened.
  [[nodiscard]] Index listed_bytes() const { return data_->bytes(); }
  [[nodiscard]] PictureCaching& caching() { return *caching_; }
  [[nodiscard]] const TrunkCaching& trunk_caching() const { return *trunk_caching_; }
  // All that maps of frozen layers depend on, beside plan and parameters.
  [[nodiscard]] std::string trunk_identity(const TrainingRecord& record,
                                           const Preparation& preparation) const;
  // Once, before what is planned is allocated: until then looking at pictures may take its place.
  [[nodiscard]] OpenedData open_data();
  // A data set by the batch; null on ranks that do not read. All ranks call this together.
  [[nodiscard]] std::shared_ptr<BatchSource> source(std::optional<Dataset> dataset,
                                                    Split split) const;
  // The length of the run with so many pictures; the learning rate follows it from then on.
  [[nodiscard]] TrainingLength settle_length(Index pictures);

  // Images of a pass.
  [[nodiscard]] Index pass_images() const { return training_.batch / training_.subdivisions; }
  [[nodiscard]] Workload workload() const { return workload(places()); }
  // What reports of a plan have to know.
  [[nodiscard]] partitioner::ReportOptions planned_options(const partitioner::Network& network,
                                                           const partitioner::Plan& plan) const;
  // What makes training by a partition inexact, in words: the one place that says so, by all
  // options and by the run that this one goes on from.
  [[nodiscard]] std::vector<std::string> inexact(const partitioner::Partition& partition) const;

 private:
  [[nodiscard]] std::optional<partitioner::InputSizes> sizes_of_inputs(bool chooses) const;
  void settle_partition(PartitionChooser* chooser);
  void settle_input_schedule();
  // Of the networks that there are in the course of a run, at the largest size.
  [[nodiscard]] std::vector<partitioner::SizedPlan> heaviest_plans(
      const partitioner::Partition& partition) const;
  void say_what_is_unusual(bool chooses) const;
  // What the data set holds, as far as this rank reads it, and what that takes.
  void list_data(bool reads);
  [[nodiscard]] std::vector<std::string> inexact(const partitioner::Replicas& replicas,
                                                 const partitioner::Compression& compression,
                                                 bool several_tiles) const;
  [[nodiscard]] MemoryLeft memory_left() const;
  [[nodiscard]] PictureCaching::Choice caching_choice(bool may_change_partition) const;
  [[nodiscard]] TrunkCaching::Choice trunk_caching_choice(bool may_change_partition) const;
  [[nodiscard]] std::optional<TrunkSteps> trunk_steps() const;
  [[nodiscard]] partitioner::Partition choose(PartitionChooser* chooser) const;
  [[nodiscard]] partitioner::Partition mapped_partition() const;
  [[nodiscard]] Index places() const;
  [[nodiscard]] Workload workload(Index images) const;
  [[nodiscard]] Index judging_bytes(Index images) const;

  const TrainingRequest& request_;
  const RunEnvironment& environment_;
  const Communicator& communicator_;
  const SessionObserver& observer_;
  std::vector<Index> program_bytes_;  // of each rank
  partitioner::ModelFile model_;
  std::optional<TrainingRecord> record_before_;
  partitioner::TrainingOptions training_;
  partitioner::StateKeeping kept_;
  std::optional<partitioner::InputSizes> sizes_;
  std::optional<InputSchedule> schedule_;  // of these
  std::optional<MappedData> mapped_;
  std::optional<ListedData> data_;
  std::optional<DataNeeds> needs_;
  partitioner::Partition partition_;
  partitioner::Plan plan_;
  std::vector<partitioner::SizedPlan> heaviest_;  // of the partition, until training begins
  std::uint64_t seed_ = 0;
  std::optional<Preparation> before_;
  RenderingRules rules_;
  std::optional<PictureCaching> caching_;
  std::optional<TrunkCaching> trunk_caching_;
};

}  // namespace tessera::engine
