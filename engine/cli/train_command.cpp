#include <filesystem>
#include <fmt/format.h>
#include <optional>

#include "engine/cli/closing_lines.h"
#include "engine/cli/commands.h"
#include "engine/cli/data_needs.h"
#include "engine/cli/data_setup.h"
#include "engine/cli/planning.h"
#include "engine/cli/resume_command.h"
#include "engine/cli/setup.h"
#include "engine/cli/stall_report.h"
#include "engine/cli/step_comparison.h"
#include "engine/cli/step_parts.h"
#include "engine/cli/terminal.h"
#include "engine/cli/training_length.h"
#include "engine/cli/training_start.h"
#include "engine/cli/version.h"
#include "engine/comm/agreement.h"
#include "engine/system/stop_request.h"
#include "engine/system/system_memory.h"
#include "engine/train/checkpoint.h"
#include "engine/train/classification_metrics.h"
#include "engine/train/run_record.h"
#include "engine/train/run_report.h"
#include "engine/train/run_story.h"
#include "engine/train/training_run.h"
#include "engine/train/weights_file.h"
#include "partitioner/base/printable.h"
#include "partitioner/report/plan_report.h"

namespace tessera::engine {

using partitioner::printable;

namespace {

constexpr const char* kStopNotice =
    "tessera: stopping after this step; a second signal exits at once, without saving\n";

// Training as the command line asks for it: all that a TrainingRun is made of, and what is printed.
class TrainRun {
 public:
  TrainRun(const TrainCommand& command,
           const Communicator& communicator,
           LastCheckpoint& saved,
           RunStory& story)
      : command_(command),
        communicator_(communicator),
        saved_(saved),
        story_(story),
        model_(model_to_train(command, communicator)),
        training_(agreed(communicator, [&] { return training_options(command, model_); })),
        data_(list_before_choosing()),
        needs_(data_ ? std::optional(needs()) : std::nullopt),
        partition_(choose()),
        plan_(make_plan(model_.network, partition_, pass_images())),
        seed_(choose_seed()),
        before_(preparation_before(command, communicator)),
        rules_(training_rules(command, before_, model_, communicator)) {}

  void run() {
    try {
      train();
    } catch (const Stopped& stopped) {
      story_.end("interrupted", stopped.what());
      throw;
    } catch (const std::exception& error) {
      story_.end("failed", error.what());
      throw;
    }
  }

 private:
  void train() {
    warn_of_idle_ranks(partition_, communicator_);
    warn_of_testing_batch(command_, model_, communicator_);
    if (!data_) {
      data_.emplace(listed_data(DataLoader::reads(plan_, communicator_.rank())));
      needs_ = needs();
    }
    expect_memory(model_.network, plan_, planned_options(), communicator_);
    record_.emplace(record_options(), communicator_);
    const Index program_bytes = resident_bytes() - data_->bytes();
    OpenedData data = std::move(*data_).open();
    DataLoader training = loader(std::move(data.training), Split::Train);
    std::optional<DataLoader> testing;
    if (command_.evaluate) {
      testing.emplace(loader(std::move(data.testing), Split::Test));
    }
    length_ = training_length(command_, training.size(), training_);
    preparation_ = preparation_of(rules_, training.class_names());
    compare_classes(command_, before_, preparation_, communicator_);
    Trainer trainer(model_.network,
                    plan_,
                    communicator_,
                    {training_, parse_batch_norm(command_.batch_norm), seed_});
    const TrainingState begun = start(trainer);
    warn_of_zero_rate(command_, training_, trainer.steps_done(), length_.last_step, communicator_);
    record_->begin(model_.network,
                   partition_,
                   begun.step,
                   testing ? testing->class_names() : std::vector<std::string>{});
    on_root(communicator_, [&] {
      say(plan_summary(model_.network, plan_, partition_, planned_options()) + "\n");
    });
    begin_story(trainer, training, testing ? testing->size() : 0);
    TrainingRun run(trainer, training, length_);
    ClassificationMetrics metric = class_metric(model_.network);
    if (testing) {
      run.test_on(*testing, metric);
    }
    take_steps(run, trainer, begun);
    partitioner::MemoryUse memory =
        measured_memory(trainer.execution().memory(), trainer.optimizer().bytes());
    for (const DataLoader* loader : {&training, testing ? &*testing : nullptr}) {
      if (loader != nullptr) {
        memory.pictures += loader->bytes();
        memory.decoding += loader->decoding_bytes();
        memory.data += loader->data_bytes();
      }
    }
    memory.program = program_bytes;
    report_memory(memory);
    on_root(communicator_, [&] {
      say(step_comparison_.line(model_.network, command_.partition, workload(), partition_));
    });
    story_.end("finished", "");
    say_what_is_next(trainer.steps_done());
  }

  void take_steps(TrainingRun& run, Trainer& trainer, const TrainingState& begun) {
    constexpr int kUsualColumns = 80;
    Progress progress(
        progress_style(), begun.step, length_.last_step, watched_columns().value_or(kUsualColumns));
    if (communicator_.rank() == 0) {
      run.add(printing(progress));
    }
    run.add(record_->observer(trainer, begun));
    run.add(story_.observer());
    run.add({.checkpoint =
                 [this](Index step) { saved_.set(record_->checkpoint_file().string(), step); },
             .enough = [this] { return is_out_of_patience(); }});
    try {
      run.run(communicator_.rank() == 0 ? kStopNotice : nullptr);
    } catch (const Stopped& stopped) {
      throw Stopped(stopped.signal(), what_was_saved(stopped.signal(), trainer.steps_done()));
    }
  }

  [[nodiscard]] bool is_out_of_patience() const {
    return command_.patience > 0 && record_->evaluations_since_best() >= command_.patience;
  }

  // Rank 0's; what it prints it may fail to print.
  [[nodiscard]] TrainingObserver printing(Progress& progress) {
    return {.step =
                [this, &progress](Index step, const StepResult& result) {
                  step_comparison_.add(result.times.step_s);
                  progress.step(step, result, training_.batch);
                },
            .evaluation =
                [&progress](Index step, double epoch, const EvaluationResult& result) {
                  progress.evaluation(step, epoch, result);
                }};
  }

  [[nodiscard]] std::string what_was_saved(int signal, Index step) const {
    const std::string file = record_->checkpoint_file().string();
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
            .rescue = [this](const std::filesystem::path& rescued) { story_.copy_to(rescued); },
            .resume_advice =
                [this](const std::filesystem::path& rescued) {
                  return command_to_resume_in(rescued.string(),
                                              started_command(),
                                              communicator_.size(),
                                              (rescued / "checkpoint.safetensors").string());
                }};
  }

  [[nodiscard]] std::optional<MonitorOptions> monitor_options() const {
    if (command_.monitor == "off") {
      return std::nullopt;
    }
    MonitorOptions options{.warn = [this](const std::string& text) {
      warn(text);
      story_.warn(text);
    }};
    for (const std::string& meter : command_.meters) {
      options.meters.push_back(parse_meter(meter));
    }
    return options;
  }

  void begin_story(Trainer& trainer, const DataLoader& training, Index testing_pictures) {
    RunStory::Start start;
    const Index training_pictures = training.size();  // all ranks ask together
    const std::vector<std::string> class_names = training.class_names();
    on_root(communicator_, [&] {
      const Index limit = command_.partition.memory_limit_mib << 20U;
      start.folder = command_.run;
      start.predicted =
          predicted_steps(command_.partition, model_.network, workload(), partition_, plan_);
      start.summary = {.version = program_version(),
                       .model = command_.model,
                       .data = command_.data,
                       .command = started_line(started_command()),
                       .last_step = length_.last_step,
                       .epoch_steps = length_.epoch_steps,
                       .batch = training_.batch,
                       .seed = seed_,
                       .training_pictures = training_pictures,
                       .testing_pictures = testing_pictures,
                       .class_names = class_names,
                       .ranks = {},
                       .predicted_step_s = start.predicted.step_s,
                       .memory_limit_bytes = limit > 0 ? std::optional(limit) : std::nullopt};
      start.plan_json = plan_json(model_.network, plan_, planned_options());
    });
    story_.begin(std::move(start), *record_, trainer, length_.last_step);
  }

  // Where a search will choose the partition, also by what pictures take.
  [[nodiscard]] std::optional<ListedData> list_before_choosing() const {
    const auto reads = reads_before_search(command_.partition, communicator_);
    return reads ? std::optional(listed_data(*reads)) : std::nullopt;
  }

  [[nodiscard]] ListedData listed_data(bool reads) const {
    return ListedData({.path = command_.data,
                       .model = command_.model,
                       .training = true,
                       .testing = command_.evaluate,
                       .skip_broken = command_.skip_broken},
                      model_.network,
                      reads,
                      communicator_);
  }

  [[nodiscard]] DataNeeds needs() const {
    DataNeeds needs = data_->needs(rendering_rules(model_));
    expect_data_fits(needs, command_.partition.memory_limit_mib << 20U);
    return needs;
  }

  [[nodiscard]] Index pass_images() const { return training_.batch / training_.subdivisions; }

  [[nodiscard]] partitioner::Partition choose() const {
    if (losses(model_.network).empty()) {
      throw AgreedError(command_.model,
                        0,
                        "the network has no loss to train with: end it with [softmax] or [cost]");
    }
    return agreed_partition(model_.network, command_.partition, workload(), communicator_);
  }

  [[nodiscard]] Workload workload() const {
    return {.model = command_.model,
            .batch = pass_images(),
            .passes = training_.subdivisions,
            .adam = training_.adam,
            .decoding_bytes = needs_ ? needs_->decoding_bytes : 0,
            .data_bytes = needs_ ? needs_->data_bytes : 0};
  }

  [[nodiscard]] std::uint64_t choose_seed() const {
    if (command_.seed || command_.resume.empty()) {
      return command_.seed.value_or(1);
    }
    return checkpoint_seed(command_.resume, communicator_);
  }

  // `dataset` on ranks that read.
  [[nodiscard]] DataLoader loader(std::optional<Dataset> dataset, Split split) const {
    auto source = agreed(communicator_, [&]() -> std::optional<BatchSource> {
      if (!dataset) {
        return std::nullopt;
      }
      BatchOptions options{rules_, pass_images(), seed_, split};
      return std::optional<BatchSource>(
          std::in_place, std::move(*dataset), options, command_.model);
    });
    return DataLoader(std::move(source), plan_, communicator_);
  }

  // Gives the trainer the weights that training begins with.
  [[nodiscard]] TrainingState start(Trainer& trainer) {
    TrainingState begun{.seed = seed_,
                        .model = model_.text,
                        .fingerprint = fingerprint(model_.network),
                        .preparation = preparation_,
                        .last_frozen = last_frozen(model_.network)};
    if (command_.weights.empty() && command_.resume.empty() && begun.last_frozen >= 0) {
      warn("frozen layers keep their random initial weights: give --weights to start with others",
           communicator_);
    }
    if (!command_.weights.empty()) {
      for (const std::string& line : load_fitting_weights(command_.weights,
                                                          model_.network,
                                                          training_.batch_norm_epsilon,
                                                          trainer.execution().parameters(),
                                                          communicator_)) {
        warn(line, communicator_);
      }
    }
    if (command_.resume.empty()) {
      return begun;
    }
    const TrainingState state = load_checkpoint(command_.resume,
                                                model_.network,
                                                trainer.execution().parameters(),
                                                trainer.optimizer(),
                                                communicator_);
    if (state.seed != seed_) {
      warn(fmt::format("the checkpoint was trained with --seed {}, this run has --seed {}: "
                       "pictures are shuffled differently",
                       state.seed,
                       seed_),
           communicator_);
    }
    if (state.step >= length_.last_step) {
      throw AgreedError(
          fmt::format("{}: already at step {} of {}: raise --steps or --epochs to continue",
                      command_.resume,
                      state.step,
                      length_.last_step));
    }
    trainer.resume_at(state.step);
    saved_.set(command_.resume, state.step);
    begun.step = state.step;
    begun.images_seen = state.images_seen > 0 ? state.images_seen : state.step * training_.batch;
    return begun;
  }

  [[nodiscard]] ProgressStyle progress_style() const {
    if (command_.progress == "none") {
      return ProgressStyle::None;
    }
    const bool bar = command_.progress == "bar" ||
                     (command_.progress == "auto" && watched_columns().has_value());
    return bar ? ProgressStyle::Bar : ProgressStyle::Line;
  }

  [[nodiscard]] partitioner::ReportOptions planned_options() const {
    partitioner::ReportOptions options =
        report_options(command_.model, model_.network, plan_, training_.adam);
    options.memory.picture_batches += command_.evaluate ? 1 : 0;  // those to test with
    options.memory.decoding_bytes = needs_ ? needs_->decoding_bytes : 0;
    options.memory.data_bytes = needs_ ? needs_->data_bytes : 0;
    return options;
  }

  void report_memory(const partitioner::MemoryUse& measured) {
    const std::string json = memory_json(
        planned_memory_of_ranks(model_.network, plan_, planned_options()), measured, communicator_);
    record_->write("memory.json", json);
    on_root(communicator_, [&] { say(memory_table(json)); });
  }

  void say_what_is_next(Index step) {
    if (communicator_.rank() == 0) {
      if (const std::string energy = record_->energy_line(); !energy.empty()) {
        say(printable(energy) + "\n");
      }
      say(closing_lines(command_, record_->best(), step, record_->evaluations_since_best()));
    }
  }

  TrainCommand command_;
  const Communicator& communicator_;
  LastCheckpoint& saved_;
  RunStory& story_;
  partitioner::ModelFile model_;
  partitioner::TrainingOptions training_;
  std::optional<ListedData> data_;
  std::optional<DataNeeds> needs_;
  partitioner::Partition partition_;
  partitioner::Plan plan_;
  std::uint64_t seed_;
  std::optional<Preparation> before_;  // of the weights that training begins with
  RenderingRules rules_;
  Preparation preparation_;
  TrainingLength length_;
  std::optional<RunRecord> record_;
  StepComparison step_comparison_;  // rank 0
};

}  // namespace

void run_train(const TrainCommand& command, const Communicator& communicator) {
  if (command.monitor == "off" && !command.meters.empty()) {
    throw AgreedError("--meter is read by the monitor: leave out --monitor off");
  }
  LastCheckpoint saved;
  RunStory story(communicator);
  saved.on_stall([&story](const std::string& what) { story.end("failed", what); });
  const Watchdog watchdog = watch(communicator, command.stall_timeout_s, &saved);
  TrainRun(command, communicator, saved, story).run();
}

}  // namespace tessera::engine
