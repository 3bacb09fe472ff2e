// The run of a training session, from the opening of the data set to the last step, with its
// records.
//
// All ranks call everything here together.

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/run_log/run_log.h"
#include "engine/run_log/run_record.h"
#include "engine/session/copy_watch.h"
#include "engine/session/faults_since.h"
#include "engine/session/kept_steps.h"
#include "engine/session/partition_chooser.h"
#include "engine/session/rebalancer.h"
#include "engine/session/step_figures.h"
#include "engine/session/training_phases.h"
#include "engine/session/training_session.h"
#include "engine/session/training_setup.h"
#include "engine/session/trial_runs.h"

namespace tessera::engine {

// What lives as long as a session, during its run and for record_failure().
struct SessionState {
  SessionState(TrainingRequest asked,
               RunEnvironment around,
               const Communicator& ranks,
               TrainingSessionObserver told)
      : request(std::move(asked)),
        environment(std::move(around)),
        communicator(ranks),
        observer(std::move(told)),
        run_log(ranks) {}

  TrainingRequest request;
  RunEnvironment environment;
  const Communicator& communicator;
  TrainingSessionObserver observer;
  RunLog run_log;
};

class SessionRun {
 public:
  // With a chooser, it says which partition to train by, after some trials; null: the setup does.
  SessionRun(SessionState& state, TrainingSetup& setup, PartitionChooser* chooser);

  // Once.
  TrainingResult run();

 private:
  void train();

  // Samples are on their way or have moved by then, where a data map says so.
  [[nodiscard]] PictureSources open_pictures();

  // What loaders tell all ranks of the pictures.
  void learn_of_pictures(const PictureSources& sources);
  [[nodiscard]] PhasePlan with_trunk(PhasePlan phase) const;
  void begin(const PictureSources& sources);
  [[nodiscard]] std::optional<Index> kept_step_to_go_on_from() const;
  [[nodiscard]] Index step_taken_last(const std::optional<Index>& kept_step) const;
  void say_what_is_frozen() const;
  void remember_first_loss();
  [[nodiscard]] std::string data_digest(const PictureSources& sources) const;
  [[nodiscard]] bool owes_epoch(Index step) const;
  [[nodiscard]] bool has_told_end(Index step) const;
  void end(Index program_bytes);
  void warn_of_risen_loss();

  [[nodiscard]] partitioner::ReportOptions planned_options() const;
  // Rank 0's.
  [[nodiscard]] std::string plan_text();
  // Predicted, over the sizes of multi-scale training; nothing without it or a profile.
  [[nodiscard]] std::optional<double> mean_step_s() const;
  void say_plan();

  // Training goes on by another partition.
  void change_to(const partitioner::Partition& partition, const std::optional<double>& predicted_s);
  void choose_by_trials();

  // Whether ranks may come to take no part.
  [[nodiscard]] bool changes_phase() const {
    return chooser_ != nullptr || request_.rebalance_window_s.has_value() ||
           !frozen_.at_first.empty();
  }

  // Takes steps as long as layers are frozen that are to learn later in this run.
  void take_steps_with_frozen_layers();
  // The next step is the first one of layers that were frozen.
  void learn_more_layers();
  // The step before the last one after which they are to do so; nothing where there is none.
  [[nodiscard]] std::optional<Index> end_of_phase() const;

  // Whether partitions that follow the speed of devices were enough training; all but the last step
  // is done then at least.
  [[nodiscard]] bool rebalances_to_the_end();

  StepWindow take_window(Index steps);
  void go_on_by(const partitioner::Partition& partition, const std::string& reason);

  [[nodiscard]] RunSize run_size() const;

  // Steps of the run that are timed, all but the first one.
  TrialMeasurement try_steps(Index steps);

  // Takes steps by those who take part; the others rest meanwhile. `work` is done with the run.
  void take_steps(const std::function<void(TrainingRun& run)>& work);
  void add_observers(TrainingRun& run);
  struct Owed {               // of the step that the run goes on from
    bool checkpoint = false;  // if it is due
    bool epoch = false;       // its end
  };
  void tell_what_is_owed(TrainingRun& run, const Owed& owed) const;
  // Compares the copies that ranks have of parameters now and then. What differs is told once: by
  // rank 0 at once, of replicas that it is not in at the end.
  void compare_copies(TrainingRun& run);
  void warn_of_unequal_copies();

  [[nodiscard]] bool is_out_of_patience() const {
    return request_.patience > 0 && record_.evaluations_since_best() >= request_.patience;
  }

  [[nodiscard]] std::string what_was_saved(int signal, Index step) const;

  [[nodiscard]] RunRecord::Options record_options() const;

  [[nodiscard]] std::optional<MonitorOptions> monitor_options() const;
  void warn(const std::string& text) const;
  void begin_run_log();
  void take_steps_while_samples_move(MappedData& mapped);

  [[nodiscard]] const char* stop_notice() const {
    return communicator_.rank() == 0 ? observer_.stop_notice : nullptr;
  }

  void report_memory(const partitioner::MemoryUse& measured);

  class StepsTold;

  struct Pictures {
    Index count = 0;
    std::vector<std::string> class_names;
  };

  const TrainingRequest& request_;
  const RunEnvironment& environment_;
  const TrainingSessionObserver& observer_;
  const SessionObserver& messages_;
  const Communicator& communicator_;
  TrainingSetup& setup_;
  RunLog& run_log_;
  PartitionChooser* chooser_;
  Preparation preparation_;
  std::string trunk_identity_;  // see TrunkCacheOptions
  TrainingLength length_;
  Pictures training_pictures_;
  Pictures testing_;
  TrainingState begun_;
  partitioner::Partition partition_;  // that there is now
  partitioner::FrozenLayers frozen_;  // in the course of the run
  Index frozen_until_ = 0;            // the step to which those of now are; 0: they stay so
  TrainingPhases phases_;
  RunRecord record_;
  Owed owed_;
  std::optional<StepFigures> figures_;  // rank 0 adds to them
  CopyWatch copies_;                    // of parameters
  std::optional<FaultsSince> faults_;   // rank 0
  KeptSteps kept_steps_;
};

}  // namespace tessera::engine
