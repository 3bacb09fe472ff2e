#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <optional>

#include "engine/cli/closing_lines.h"
#include "engine/cli/commands.h"
#include "engine/cli/partition_chooser.h"
#include "engine/cli/planning.h"
#include "engine/cli/rebalancer.h"
#include "engine/cli/resume_command.h"
#include "engine/cli/setup.h"
#include "engine/cli/stall_report.h"
#include "engine/cli/step_comparison.h"
#include "engine/cli/step_parts.h"
#include "engine/cli/terminal.h"
#include "engine/cli/training_length.h"
#include "engine/cli/training_phases.h"
#include "engine/cli/training_setup.h"
#include "engine/cli/training_start.h"
#include "engine/cli/trial_runs.h"
#include "engine/cli/version.h"
#include "engine/comm/agreement.h"
#include "engine/files/run_files.h"
#include "engine/run_log/memory_record.h"
#include "engine/run_log/progress.h"
#include "engine/run_log/run_log.h"
#include "engine/run_log/run_record.h"
#include "engine/system/say.h"
#include "engine/system/stop_request.h"
#include "engine/system/system_memory.h"
#include "engine/train/checkpoint.h"
#include "engine/train/classification_metrics.h"
#include "engine/train/pass_end.h"
#include "engine/train/training_run.h"
#include "partitioner/base/printable.h"
#include "partitioner/report/plan_report.h"

namespace tessera::engine {

namespace {

constexpr const char* kStopNotice =
    "tessera: stopping after this step; a second signal exits at once, without saving\n";

// Training from the opening of the data set to the last line, with its record and what is printed.
class TrainRun {
 public:
  // With a chooser, it says which partition to train by, after some trials; null: the setup does.
  TrainRun(const TrainCommand& command,
           const Communicator& communicator,
           TrainingSetup& setup,
           LastCheckpoint& saved,
           RunLog& run_log,
           PartitionChooser* chooser)
      : command_(command),
        communicator_(communicator),
        setup_(setup),
        saved_(saved),
        run_log_(run_log),
        chooser_(chooser),
        partition_(setup.partition()),
        phases_(setup.network(), communicator),
        record_(record_options(), communicator) {}

  void run() {
    try {
      train();
    } catch (const Stopped& stopped) {
      run_log_.end("interrupted", stopped.what());
      throw;
    } catch (const std::exception& error) {
      run_log_.end("failed", error.what());
      throw;
    }
  }

 private:
  void train() {
    const Index program_bytes = resident_bytes() - setup_.listed_bytes();
    const PictureSources sources = open_pictures();
    if (chooser_ != nullptr) {
      chooser_->expect_feasible(run_size(), communicator_);
    }
    begin(sources);
    if (MappedData* mapped = setup_.mapped()) {
      if (mapped->is_moving()) {
        take_steps_while_samples_move(*mapped);
      }
      if (!mapped->moved().empty()) {
        run_log_.tell("move", mapped->moved());
      }
    }
    if (chooser_ != nullptr) {
      choose_by_trials();
      say_plan();
    }
    if (!command_.rebalance || !rebalances_to_the_end()) {
      take_steps([](TrainingRun& run, const char* notice) { run.run(notice); });
    }
    if (changes_partition()) {
      record_.finish_monitor();
    }
    end(program_bytes);
  }

  // Samples are on their way or have moved by then, where a data map says so.
  [[nodiscard]] PictureSources open_pictures() {
    OpenedData data = setup_.open_data();
    MappedData* mapped = setup_.mapped();
    warn_of_other_data_map(
        command_.resume, mapped != nullptr ? mapped->text() : std::string(), communicator_);
    if (mapped != nullptr) {
      mapped->make_room(*data.training);
    }
    const std::shared_ptr<BatchSource> training =
        setup_.source(std::move(data.training), Split::Train);
    if (mapped != nullptr) {
      mapped->begin_move(command_.run, progress_style(), training);
      if (data.testing) {
        mapped->test_on(data.testing->size());
      }
    }
    PictureSources sources{.training = training,
                           .testing = setup_.source(std::move(data.testing), Split::Test),
                           .tests = command_.evaluate};
    learn_of_pictures(sources);
    return sources;
  }

  // What loaders tell all ranks of the pictures.
  void learn_of_pictures(const PictureSources& sources) {
    const DataLoader training(sources.training, setup_.plan(), communicator_);
    training_pictures_ = {training.size(), training.class_names()};
    if (sources.tests) {
      const DataLoader testing(sources.testing, setup_.plan(), communicator_);
      testing_ = {testing.size(), testing.class_names()};
    }
    length_ = setup_.settle_length(training_pictures_.count);
    preparation_ = preparation_of(setup_.rules(), training_pictures_.class_names);
    compare_classes(command_, setup_.before(), preparation_, communicator_);
  }

  void begin(const PictureSources& sources) {
    const TrainerOptions options{
        setup_.training(),
        parse_batch_norm(command_.batch_norm),
        setup_.seed(),
        post_local_steps(command_, partition_.replicas.sync, length_.last_step, communicator_)};
    phases_.begin(setup_.take_plan(), options, sources);
    begun_ = begin_training(command_,
                            setup_.model(),
                            preparation_,
                            length_.last_step,
                            phases_.now()->trainer(),
                            communicator_);
    if (!command_.resume.empty()) {
      saved_.set(command_.resume, begun_.step);
    }
    warn_of_zero_rate(command_, setup_.training(), begun_.step, length_.last_step, communicator_);
    record_.begin(setup_.network(), partition_, begun_.step, testing_.class_names);
    if (setup_.mapped() != nullptr) {
      record_.write(run_file::kDataMap, setup_.mapped()->text());
    }
    if (chooser_ == nullptr) {
      say_plan();
    }
    begin_run_log();
  }

  void end(Index program_bytes) {
    partitioner::MemoryUse memory = phases_.memory();
    memory.program = program_bytes;
    memory.data += setup_.mapped() != nullptr ? setup_.mapped()->moving_bytes() : 0;
    report_memory(memory);
    on_root(communicator_, [&] {
      say(step_comparison_.line(
          setup_.network(), command_.partition, setup_.workload(), partition_));
    });
    run_log_.sent_bytes(sum_over_ranks(communicator_, static_cast<double>(phases_.sent_bytes())));
    run_log_.end("finished", "");
    say_what_is_next(phases_.steps_done());
  }

  // Rank 0's.
  [[nodiscard]] std::string plan_text() {
    const partitioner::Plan& plan = phases_.plan();
    return plan_summary(setup_.network(), plan, partition_, setup_.planned_options(plan)) + "\n";
  }
  void say_plan() {
    on_root(communicator_, [&] { say(plan_text()); });
  }

  // Training goes on by another partition.
  void change_to(const partitioner::Partition& partition,
                 const std::optional<double>& predicted_s) {
    phases_.change_to(partition, setup_.pass_images());
    partition_ = partition;
    step_comparison_ = {};
    if (TrainingPhase* phase = phases_.now()) {
      PredictedSteps predicted;
      std::string planned;
      on_root(phase->communicator(), [&] {
        predicted = predicted_steps(
            command_.partition, setup_.network(), setup_.workload(), partition_, phase->plan());
        predicted.step_s = predicted_s ? predicted_s : predicted.step_s;
        planned = plan_json(setup_.network(), phase->plan(), setup_.planned_options(phase->plan()));
      });
      run_log_.go_on(planned, std::move(predicted), phase->trainer(), length_.last_step);
    }
  }

  void choose_by_trials() {
    const OrderlyStop orderly(communicator_.rank() == 0 ? kStopNotice : nullptr);
    const MeterReading mine = record_.meter_reading();
    const std::vector<int> metered =
        communicator_.of_ranks(mine.board.is_there || mine.cluster.is_there ? 1 : 0);
    TrialRuns runs{
        .communicator = communicator_,
        .size = run_size(),
        .metered = std::find(metered.begin(), metered.end(), 1) != metered.end(),
        .change_to = [this](const auto& partition,
                            const auto& predicted_s) { change_to(partition, predicted_s); },
        .take_steps = [this](Index steps) { return try_steps(steps); },
        .write = [this](const char* name, const std::string& text) { record_.write(name, text); },
        .tell = [this](const std::string& kind,
                       const std::string& text) { run_log_.tell(kind, text); }};
    chooser_->choose(runs);
    record_.write(run_file::kPartition, to_text(partition_));
  }

  // Whether ranks may come to take no part.
  [[nodiscard]] bool changes_partition() const { return chooser_ != nullptr || command_.rebalance; }

  // Whether partitions that follow the speed of devices were enough training; all but the last step
  // is done then at least.
  [[nodiscard]] bool rebalances_to_the_end() {
    const OrderlyStop orderly(communicator_.rank() == 0 ? kStopNotice : nullptr);
    Rebalancer rebalancer(setup_.network(), command_.partition, setup_.workload(), communicator_);
    return take_rebalanced_steps(
        {.first_step = phases_.steps_done(),
         .last_step = length_.last_step,
         .window_s = static_cast<double>(command_.rebalance_s),
         .take_steps = [this](Index steps) { return take_window(steps); },
         .go_on_by = [this](const auto& partition,
                            const auto& reason) { go_on_by(partition, reason); }},
        partition_,
        rebalancer);
  }

  StepWindow take_window(Index steps) {
    StepWindow window;
    Index counted = 0;
    take_steps([&](TrainingRun& run, const char* notice) {
      const Index first = phases_.now()->trainer().steps_done();
      run.add({.step = [&](Index step, const StepResult& result) {
        if (step > first + 1 || steps == 1) {
          window.computing_s += result.times.computing_s();
          window.step_s += result.times.step_s;
          ++counted;
        }
      }});
      run.run_until(first + steps, notice);
      window.enough = run.is_enough();
      if (window.enough) {
        run.run(notice);  // what comes at the end
      }
      window.steps_done = phases_.now()->trainer().steps_done();
    });
    const StepWindow root = communicator_.share(window);
    const auto mean = static_cast<double>(std::max<Index>(communicator_.share(counted), 1));
    return {.steps_done = root.steps_done,
            .enough = root.enough,
            .step_s = root.step_s / mean,
            .computing_s = window.computing_s / mean};
  }

  void go_on_by(const partitioner::Partition& partition, const std::string& reason) {
    change_to(partition, std::nullopt);
    record_.write(run_file::kPartition, to_text(partition_));
    on_root(communicator_, [&] {
      const std::string text = "another partition: " + reason;
      run_log_.tell("rebalance", text);
      say(printable(text) + "\n" + plan_text());
    });
  }

  [[nodiscard]] RunSize run_size() const {
    return {.steps = length_.last_step,
            .first_step = begun_.step,
            .epoch_steps = length_.epoch_steps,
            .testing_steps =
                static_cast<double>(testing_.count) / static_cast<double>(setup_.training().batch)};
  }

  // Steps of the run that are timed, all but the first one.
  TrialMeasurement try_steps(Index steps) {
    TrialMeasurement mine;
    MeterReading before = record_.meter_reading();
    take_steps([&](TrainingRun& run, const char* notice) {
      const Index first = phases_.now()->trainer().steps_done();
      StepTimes sum;
      run.add({.step = [&](Index step, const StepResult& result) {
        if (step == first + 1 && steps > 1) {
          before = record_.meter_reading();
          return;
        }
        mine.step_s.push_back(result.times.step_s);
        sum.step_s += result.times.step_s;
        sum.waiting_s += result.times.waiting_s;
      }});
      run.run_until(first + steps, notice);
      mine.computing = sum.step_s > 0 ? 1 - sum.waiting_s / sum.step_s : 0;
    });
    const MeterReading after = record_.meter_reading();
    mine.board = measured_power(before.board, after.board);
    mine.cluster = measured_power(before.cluster, after.cluster);
    return mine;
  }

  // Takes steps by those who take part; the others rest meanwhile. `work` is done with the run.
  template <class Work>
  void take_steps(const Work& work) {
    const auto take = [&] {
      TrainingPhase& phase = *phases_.now();
      TrainingRun run(phase.trainer(), phase.training(), length_);
      ClassificationMetrics metric = class_metric(setup_.network());
      run.goes_on_from(begun_.step);
      if (phase.testing() != nullptr) {
        run.test_on(*phase.testing(), metric);
      }
      constexpr int kUnwatchedColumns = 80;
      Progress progress(progress_style(),
                        phase.trainer().steps_done(),
                        length_.last_step,
                        watched_columns().value_or(kUnwatchedColumns));
      add_observers(run, progress);
      try {
        work(run, communicator_.rank() == 0 ? kStopNotice : nullptr);
      } catch (const Stopped& stopped) {
        throw Stopped(stopped.signal(),
                      what_was_saved(stopped.signal(), phase.trainer().steps_done()));
      }
    };
    try {
      phases_.take_part(take);
    } catch (const Stopped&) {
      if (changes_partition()) {
        record_.finish_monitor();
      }
      throw;
    }
  }

  void add_observers(TrainingRun& run, Progress& progress) {
    if (communicator_.rank() == 0) {
      run.add(printing(progress));
    }
    run.add(record_.observer(phases_.now()->trainer(), begun_));
    run.add(run_log_.observer());
    run.add(
        {.checkpoint = [this](Index step) { saved_.set(record_.checkpoint_file().string(), step); },
         .enough = [this] { return is_out_of_patience(); }});
  }

  [[nodiscard]] bool is_out_of_patience() const {
    return command_.patience > 0 && record_.evaluations_since_best() >= command_.patience;
  }

  // Rank 0's; what it prints it may fail to print.
  [[nodiscard]] TrainingObserver printing(Progress& progress) {
    return {.step =
                [this, &progress](Index step, const StepResult& result) {
                  step_comparison_.add(result.times.step_s);
                  progress.step(step, result, setup_.training().batch);
                },
            .evaluation =
                [&progress](Index step, double epoch, const EvaluationResult& result) {
                  progress.evaluation(step, epoch, result);
                }};
  }

  [[nodiscard]] std::string what_was_saved(int signal, Index step) const {
    const std::string file = record_.checkpoint_file().string();
    return fmt::format(
        "{} after step {}: saved in {}; {}",
        signal_name(signal),
        step,
        printable(file),
        step == length_.last_step
            ? "that was the last one"
            : "to continue: " + command_to_resume(started_command(), communicator_.size(), file));
  }

  [[nodiscard]] RunRecord::Options record_options() const {
    return {.folder = command_.run,
            .resume = command_.resume,
            .replace = command_.force,
            .monitor = monitor_options(),
            .some_rest = changes_partition(),
            .rescue = [this](const std::filesystem::path& rescued) { run_log_.copy_to(rescued); },
            .resume_advice =
                [this](const std::filesystem::path& rescued) {
                  return command_to_resume_in(rescued.string(),
                                              started_command(),
                                              communicator_.size(),
                                              (rescued / run_file::kCheckpoint).string());
                }};
  }

  [[nodiscard]] std::optional<MonitorOptions> monitor_options() const {
    if (command_.monitor == "off") {
      return std::nullopt;
    }
    MonitorOptions options{.warn = [this](const std::string& text) {
      warn(text);
      run_log_.warn(text);
    }};
    for (const std::string& meter : command_.meters) {
      options.meters.push_back(parse_meter(meter));
    }
    return options;
  }

  void begin_run_log() {
    RunLog::Start start;
    TrainingPhase& phase = *phases_.now();
    const partitioner::Plan& plan = phase.plan();
    on_root(communicator_, [&] {
      const Index limit = command_.partition.memory_limit_mib << 20U;
      start.folder = command_.run;
      start.predicted = predicted_steps(
          command_.partition, setup_.network(), setup_.workload(), partition_, plan);
      start.summary = {.version = program_version(),
                       .model = command_.model,
                       .data = command_.data,
                       .command = started_line(started_command()),
                       .last_step = length_.last_step,
                       .epoch_steps = length_.epoch_steps,
                       .batch = setup_.training().batch,
                       .seed = setup_.seed(),
                       .replicas = plan.replicas.count,
                       .sync = to_text(plan.replicas.sync),
                       .gradient_precision = to_text(partition_.gradient_reduction.compression),
                       .inexact = setup_.inexact(partition_),
                       .training_pictures = training_pictures_.count,
                       .testing_pictures = testing_.count,
                       .class_names = training_pictures_.class_names,
                       .ranks = {},
                       .predicted_step_s = start.predicted.step_s,
                       .memory_limit_bytes = limit > 0 ? std::optional(limit) : std::nullopt};
      start.plan_json = plan_json(setup_.network(), plan, setup_.planned_options(plan));
    });
    run_log_.begin(std::move(start), record_, phase.trainer(), length_.last_step);
  }

  void take_steps_while_samples_move(MappedData& mapped) {
    const Index most = std::min(mapped.early_steps(), length_.last_step - 1);
    Index step = 0;
    take_steps([&](TrainingRun& run, const char* notice) {
      while (step < most && !mapped.look(most)) {
        run.run_until(++step, notice);
      }
    });
    phases_.now()->training().finish_reading();
    mapped.finish_move(step);
  }

  [[nodiscard]] ProgressStyle progress_style() const {
    if (command_.progress == "none") {
      return ProgressStyle::None;
    }
    const bool bar = command_.progress == "bar" ||
                     (command_.progress == "auto" && watched_columns().has_value());
    return bar ? ProgressStyle::Bar : ProgressStyle::Line;
  }

  void report_memory(const partitioner::MemoryUse& measured) {
    const partitioner::Plan& plan = phases_.plan();
    const std::string json =
        memory_json(planned_memory_of_ranks(setup_.network(), plan, setup_.planned_options(plan)),
                    measured,
                    communicator_);
    record_.write(run_file::kMemory, json);
    on_root(communicator_, [&] { say(memory_table(json)); });
  }

  void say_what_is_next(Index step) {
    if (communicator_.rank() == 0) {
      if (const std::string energy = record_.energy_line(); !energy.empty()) {
        say(printable(energy) + "\n");
      }
      say(closing_lines(command_, record_.best(), step, record_.evaluations_since_best()));
    }
  }

  struct Pictures {
    Index count = 0;
    std::vector<std::string> class_names;
  };

  const TrainCommand& command_;
  const Communicator& communicator_;
  TrainingSetup& setup_;
  LastCheckpoint& saved_;
  RunLog& run_log_;
  PartitionChooser* chooser_;
  Preparation preparation_;
  TrainingLength length_;
  Pictures training_pictures_;
  Pictures testing_;
  TrainingState begun_;
  partitioner::Partition partition_;  // that there is now
  TrainingPhases phases_;
  RunRecord record_;
  StepComparison step_comparison_;  // rank 0
};

}  // namespace

void run_train(const TrainCommand& command, const Communicator& communicator) {
  run_train(command, communicator, nullptr);
}

void run_train(const TrainCommand& command,
               const Communicator& communicator,
               PartitionChooser* chooser) {
  LastCheckpoint saved;
  RunLog run_log(communicator);
  saved.on_stall([&run_log](const std::string& what) { run_log.end("failed", what); });
  const Watchdog watchdog = watch(communicator, command.stall_timeout_s, &saved);
  TrainingSetup setup(command, communicator, chooser);
  TrainRun(command, communicator, setup, saved, run_log, chooser).run();
}

}  // namespace tessera::engine
