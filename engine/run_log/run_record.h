// What a training run keeps in its folder: metrics, epochs, the last evaluation, checkpoints and
// the best weights so far. Where the folder vanishes during the run, what was learnt is saved in
// another one.
//
// A checkpoint is written, up to what the system keeps in memory for its disk, before the next
// step, and put on the disk under its name while steps go on. That takes no memory that has to be
// planned, which a copy of all weights would, on devices that cannot hold them: where the system
// has little to spare, writing waits for the disk.
//
// Rank 0 has the folder; all ranks call everything here together, and errors are AgreedErrors.

#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/comm/agreement.h"
#include "engine/comm/run_clock.h"
#include "engine/monitor/device_log.h"
#include "engine/monitor/monitor.h"
#include "engine/run_log/background_work.h"
#include "engine/run_log/epoch_table.h"
#include "engine/run_log/metrics_file.h"
#include "engine/run_log/run_folder.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "engine/train/training_run.h"

namespace tessera::engine {

class RunRecord {
 public:
  struct Options {
    std::filesystem::path folder;
    std::filesystem::path resume;  // the checkpoint that the run goes on from; empty: none
    bool replace = false;          // an earlier run in the folder
    bool goes_on = false;          // the folder is this run's own, whatever it goes on from
    std::optional<MonitorOptions> monitor = {};  // nothing: devices are not monitored
    // What else is to be on the disk before a checkpoint is; rank 0's, in a thread of its own.
    std::function<void()> sync = {};
    // A checkpoint after that step is on the disk. On all ranks that take part; on rank 0 a thread
    // of its own says so as soon as it is, on the others it is said after one of the next steps.
    std::function<void(Index step)> saved = {};
    // Some ranks may take no part in steps: finish_monitor() is then called by all of them.
    bool some_rest = false;
    // What else is to be saved where the folder vanished; rank 0's.
    std::function<void(const std::filesystem::path& folder)> rescue = {};
    // How to go on from a checkpoint in another folder, for a message; rank 0's.
    std::function<std::string(const std::filesystem::path& folder)> resume_advice = {};
  };

  // Takes the folder, see RunFolder; nothing in it is changed yet.
  RunRecord(Options options, const Communicator& communicator);

  // Makes the folder ready for a run of this network from a step on, 0: from the start. With
  // `owes_epoch` what there is of the end of the epoch at that step goes, since it comes again. The
  // names are those that evaluations have for classes. `stood_s`, rank 0's: how long ago the last
  // step was, where a fault came after it; that is time of the run. Else its clock goes on from its
  // last records, whenever they were made.
  void begin(const partitioner::Network& network,
             const partitioner::Partition& partition,
             Index step,
             bool owes_epoch,
             std::vector<std::string> class_names = {},
             const std::optional<double>& stood_s = {});

  // What files of lines have lost of the run that goes on, in words; rank 0's, after begin().
  [[nodiscard]] const std::vector<std::string>& damage() const { return damage_; }

  // Records a run, or the next part of one: by those who take part in it. `begun` is the state
  // before the first step of all; both must outlive the run.
  [[nodiscard]] TrainingObserver observer(Trainer& trainer, const TrainingState& begun);

  // Waits until what was saved so far is on the disk. By those who take part, together; the end of
  // a run does it by itself.
  void settle();

  // Whether a checkpoint that nobody asked for by an interval is worth the wear of the disk, see
  // write_budget.h. By those who take part, together.
  [[nodiscard]] bool may_write_checkpoint() const;

  // The last samples of all devices. Where some ranks rest, all call it together after the run.
  void finish_monitor();

  // What this rank's meters show now; nothing without a monitor or a meter.
  [[nodiscard]] MeterReading meter_reading() {
    return monitor_ ? monitor_->meter_reading() : MeterReading();
  }

  void write(const char* name, const std::string& text);

  // What monitoring has found out about the energy of the run, on rank 0; empty where no meter is
  // known.
  [[nodiscard]] std::string energy_line() { return monitor_ ? monitor_->energy_line() : ""; }

  // Seconds of the run, once it has begun.
  [[nodiscard]] const RunClock& clock() const { return *clock_; }
  // Rank 0's: whether the run goes on in its own folder.
  [[nodiscard]] bool goes_on() const { return folder_->goes_on(); }
  [[nodiscard]] std::filesystem::path checkpoint_file() const;
  // The step of the last checkpoint; of a run that goes on from another folder that with which it
  // began. 0: there is none that is fit to go on from.
  [[nodiscard]] Index checkpoint_step() const { return checkpoint_step_; }
  [[nodiscard]] const std::optional<BestSoFar>& best() const { return best_; }
  // In this run and the one that it continues in the same folder.
  [[nodiscard]] Index evaluations_since_best() const { return since_best_; }

 private:
  [[nodiscard]] bool goes_on_from_previous() const;
  void find_checkpoint(Index step);
  [[nodiscard]] double open_devices(Index step, bool after_fault);
  void add_step(Index step, const StepResult& result, Trainer& trainer);
  void finish_monitor_of_all();
  [[nodiscard]] bool is_there() const;
  void expect_there() const;
  void save(Trainer& trainer, const TrainingState& begun);
  [[nodiscard]] std::shared_ptr<SafetensorsWriter> written(const std::filesystem::path& file,
                                                           const std::filesystem::path& previous,
                                                           Trainer& trainer,
                                                           const TrainingState& begun,
                                                           const std::optional<TestResult>& tested);
  void settle_checkpoint();
  void settle_best();
  void note_saved();
  void add_evaluation(Trainer& trainer,
                      const TrainingState& begun,
                      double epoch,
                      const EvaluationResult& result);
  void keep_what_was_learnt(Trainer& trainer, const TrainingState& begun);
  [[noreturn]] void rescue(Trainer& trainer, const TrainingState& begun);

  Options options_;
  const Communicator* communicator_;
  const Communicator* trains_;          // those who take part in the steps at hand
  std::optional<RunFolder> folder_;     // rank 0
  std::optional<MetricsFile> metrics_;  // rank 0
  std::optional<DeviceLog> devices_;    // rank 0, where there is a monitor
  std::optional<RunClock> clock_;
  std::optional<Monitor> monitor_;
  EnergyInterval step_energy_;
  EnergyInterval epoch_energy_;
  std::optional<EpochTable> epochs_;  // rank 0
  std::vector<std::string> class_names_;
  std::optional<BestSoFar> best_;
  Index checkpoint_step_ = 0;
  bool keeps_checkpoint_ = true;  // the one that the next replaces, as the previous one
  Index since_best_ = 0;
  std::vector<std::string> damage_;  // rank 0
  std::int64_t written_before_ = 0;  // bytes of this process, when the run began
  double begun_s_ = 0;
  // The step of a checkpoint of which this rank does not know yet that it is on the disk.
  std::optional<Index> unsettled_;
  // Rank 0's, of one file each. They use what is above.
  BackgroundWork checkpoint_work_;
  BackgroundWork best_work_;
};

}  // namespace tessera::engine
