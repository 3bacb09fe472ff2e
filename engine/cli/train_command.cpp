#include <filesystem>
#include <fmt/format.h>
#include <optional>

#include "engine/cli/closing_lines.h"
#include "engine/cli/commands.h"
#include "engine/cli/data_needs.h"
#include "engine/cli/data_setup.h"
#include "engine/cli/planning.h"
#include "engine/cli/resume_command.h"
#include "engine/cli/run_folder.h"
#include "engine/cli/setup.h"
#include "engine/cli/stall_report.h"
#include "engine/cli/step_comparison.h"
#include "engine/cli/terminal.h"
#include "engine/cli/training_length.h"
#include "engine/cli/training_start.h"
#include "engine/comm/agreement.h"
#include "engine/files/atomic_file.h"
#include "engine/system/stop_request.h"
#include "engine/system/system_memory.h"
#include "engine/train/checkpoint.h"
#include "engine/train/metrics.h"
#include "engine/train/run_report.h"
#include "engine/train/weights_file.h"
#include "partitioner/base/printable.h"
#include "partitioner/report/plan_report.h"

namespace tessera::engine {

using partitioner::InputError;
using partitioner::printable;

namespace {

constexpr const char* kStopNotice =
    "tessera: stopping after this step; a second signal ends it at once, without saving\n";

constexpr const char* kGone =
    "the run folder, or metrics.jsonl in it, is gone: deleted, moved, or its disk taken out";

// All of a training run: what is fixed when it starts, and its course.
class TrainingRun {
 public:
  TrainingRun(const TrainCommand& command, const Communicator& communicator, LastCheckpoint& saved)
      : command_(command),
        communicator_(communicator),
        saved_(saved),
        model_(load_model(command.model, communicator)),
        training_(agreed(communicator, [&] { return training_options(command, model_); })),
        data_(list_before_choosing()),
        needs_(data_ ? std::optional(needs()) : std::nullopt),
        partition_(choose()),
        plan_(make_plan(model_.network, partition_, pass_images())),
        seed_(choose_seed()),
        before_(preparation_before(command, communicator)),
        rules_(training_rules(command, before_, model_, communicator)) {}

  void run() {
    warn_of_idle_ranks(partition_, communicator_);
    warn_of_testing_batch(command_, model_, communicator_);
    if (!data_) {
      data_.emplace(listed_data(Feed::reads(plan_, communicator_.rank())));
      needs_ = needs();
    }
    expect_memory(model_.network, plan_, planned_options(), communicator_);
    on_root([&] { folder_.emplace(command_.run, command_.resume, command_.force); });
    const Index program_bytes = resident_bytes() - data_->bytes();
    OpenedData data = std::move(*data_).open();
    Feed training = feed(std::move(data.training), Split::Train);
    std::optional<Feed> testing;
    if (command_.evaluate) {
      testing.emplace(feed(std::move(data.testing), Split::Test));
    }
    pictures_ = training.size();
    length_ = training_length(command_, pictures_, training_);
    preparation_ = preparation_of(rules_, training.class_names());
    compare_classes(command_, before_, preparation_, communicator_);
    Trainer trainer(model_.network,
                    plan_,
                    communicator_,
                    {training_, parse_batch_norm(command_.batch_norm), seed_});
    start(trainer);
    warn_of_zero_rate(command_, training_, trainer.steps_done(), length_.last_step, communicator_);
    open_run_folder(trainer.steps_done());
    take_steps(trainer, training, testing);
    partitioner::MemoryUse memory =
        measured_memory(trainer.execution().memory(), trainer.optimizer().bytes());
    for (const Feed* feed : {&training, testing ? &*testing : nullptr}) {
      if (feed != nullptr) {
        memory.pictures += feed->bytes();
        memory.decoding += feed->decoding_bytes();
        memory.data += feed->data_bytes();
      }
    }
    memory.program = program_bytes;
    report_memory(memory);
    on_root([&] {
      say(step_comparison_.line(model_.network, command_.partition, workload(), partition_));
    });
    say_what_is_next(trainer.steps_done());
  }

 private:
  void take_steps(Trainer& trainer, Feed& training, std::optional<Feed>& testing) {
    const Index first_step = trainer.steps_done();
    constexpr int kUsualColumns = 80;
    Progress progress(
        progress_style(), first_step, length_.last_step, watched_columns().value_or(kUsualColumns));
    const OrderlyStop orderly(communicator_.rank() == 0 ? kStopNotice : nullptr);
    try {
      while (trainer.steps_done() < length_.last_step) {
        step(trainer, training, testing, progress);
      }
      on_root([&] {
        expect_run_folder();
        metrics_->sync();
      });
    } catch (const Diverged&) {
      throw;
    } catch (const AgreedError&) {  // a picture, or the disk
      keep_what_was_learnt(trainer, first_step);
      throw;
    }
  }

  void step(Trainer& trainer, Feed& training, std::optional<Feed>& testing, Progress& progress) {
    const StepResult result = trainer.step(training);
    const Index step = trainer.steps_done();
    on_root([&] {
      step_comparison_.add(result.times.step_s);
      metrics_->add_step(step, result, training_.batch);
      expect_run_folder();
      progress.step(step, result, training_.batch);
    });
    const bool last = step == length_.last_step;
    if (step % checkpoint_steps() == 0 || last) {
      save(trainer);
    }
    if (result.stop_signal != 0) {
      stop(trainer, result.stop_signal);
    }
    if (testing && (step % length_.epoch_steps == 0 || last)) {
      try {
        test(trainer, *testing, progress);
      } catch (const Stopped& stopped) {
        stop(trainer, stopped.signal());
      }
    }
  }

  // With what was learnt in the checkpoint.
  [[noreturn]] void stop(Trainer& trainer, int signal) {
    const Index step = trainer.steps_done();
    if (saved_.step() != step) {
      save(trainer);
    }
    const std::string file = checkpoint_file().string();
    throw Stopped(
        signal,
        fmt::format(
            "{} after step {}: saved in {}; {}",
            signal_name(signal),
            step,
            printable(file),
            step == length_.last_step
                ? "that was the last one"
                : "to go on: " + command_to_resume(started_command(), communicator_.size(), file)));
  }

  void test(Trainer& trainer, Feed& testing, Progress& progress) {
    const Index step = trainer.steps_done();
    const EvaluationResult evaluation = evaluate(trainer.execution(), testing);
    const double epoch =
        static_cast<double>(step * training_.batch) / static_cast<double>(pictures_);
    on_root([&] {
      metrics_->add_evaluation(step, epoch, evaluation);
      progress.evaluation(step, epoch, evaluation);
    });
    const BestSoFar now{step, {evaluation.accuracy, evaluation.loss}};
    if (!best_ || now.tested.better_than(best_->tested)) {
      save_as("best.safetensors", trainer, now.tested);
      best_ = now;
    }
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

  // Rank 0 does the work; what goes wrong with it is thrown on all ranks.
  template <class Work>
  void on_root(Work work) {
    throw_agreed(communicator_, problem_of([&] {
                   if (communicator_.rank() == 0) {
                     work();
                   }
                 }));
  }

  [[nodiscard]] partitioner::Partition choose() const {
    if (loss_layer(model_.network) < 0) {
      throw AgreedError(command_.model,
                        0,
                        "the network has no loss to train by: end it with [softmax] or [cost]");
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
  [[nodiscard]] Feed feed(std::optional<Dataset> dataset, Split split) const {
    auto source = agreed(communicator_, [&]() -> std::optional<BatchSource> {
      if (!dataset) {
        return std::nullopt;
      }
      BatchOptions options{rules_, pass_images(), seed_, split};
      return std::optional<BatchSource>(
          std::in_place, std::move(*dataset), options, command_.model);
    });
    return Feed(std::move(source), plan_, communicator_);
  }

  void start(Trainer& trainer) {
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
      return;
    }
    const TrainingState state = load_checkpoint(command_.resume,
                                                model_.network,
                                                trainer.execution().parameters(),
                                                trainer.optimizer(),
                                                communicator_);
    if (state.seed != seed_) {
      warn(fmt::format("the checkpoint was trained with --seed {}, this run has --seed {}: the "
                       "order of pictures changes",
                       state.seed,
                       seed_),
           communicator_);
    }
    if (state.images_seen > 0) {
      seen_before_ = state.images_seen - state.step * training_.batch;
    }
    if (state.step >= length_.last_step) {
      throw AgreedError(
          fmt::format("{}: already at step {} of {}: raise --steps or --epochs to go on",
                      command_.resume,
                      state.step,
                      length_.last_step));
    }
    trainer.resume_at(state.step);
    saved_.set(command_.resume, state.step);
  }

  void open_run_folder(Index resumed_step) {
    struct Found {
      bool any = false;
      BestSoFar best;
    } found;
    on_root([&] {
      if (folder_->goes_on()) {
        const auto best =
            best_so_far(folder_->file("best.safetensors"), model_.network, resumed_step);
        found = {best.has_value(), best.value_or(BestSoFar())};
      }
      folder_->prepare();
      metrics_.emplace(folder_->file("metrics.jsonl"), resumed_step);
      write_atomically(folder_->file("partition.toml"), to_text(partition_));
      say(plan_summary(model_.network, plan_, partition_, planned_options()) + "\n");
    });
    found = communicator_.share(found);
    best_ = found.any ? std::optional<BestSoFar>(found.best) : std::nullopt;
  }

  // A file that is open can be written after its folder was deleted: nothing else would show it.
  void expect_run_folder() const {
    if (!is_run_folder_there()) {
      throw InputError(command_.run, 0, kGone);
    }
  }

  // Rank 0's.
  [[nodiscard]] bool is_run_folder_there() const {
    return folder_->is_there() && metrics_->is_there();
  }

  [[nodiscard]] std::filesystem::path checkpoint_file() const {
    return std::filesystem::path(command_.run) / "checkpoint.safetensors";
  }

  [[nodiscard]] Index checkpoint_steps() const {
    return command_.checkpoint_every > 0 ? command_.checkpoint_every : length_.epoch_steps;
  }

  [[nodiscard]] ProgressStyle progress_style() const {
    if (command_.progress == "none") {
      return ProgressStyle::None;
    }
    const bool bar = command_.progress == "bar" ||
                     (command_.progress == "auto" && watched_columns().has_value());
    return bar ? ProgressStyle::Bar : ProgressStyle::Line;
  }

  void save(Trainer& trainer) {
    trainer.expect_finite_parameters();
    on_root([&] { metrics_->sync(); });
    save_as("checkpoint.safetensors", trainer, std::nullopt);
    saved_.set(checkpoint_file().string(), trainer.steps_done());
    // They are not saved: so training goes on from here as it would from the checkpoint.
    trainer.execution().parameters().forget_remainders();
  }

  // Into the run folder.
  void save_as(const char* name, Trainer& trainer, const std::optional<TestResult>& tested) {
    save_into(communicator_.rank() == 0 ? folder_->file(name) : "", trainer, tested);
  }

  // The path is rank 0's.
  void save_into(const std::filesystem::path& path,
                 Trainer& trainer,
                 const std::optional<TestResult>& tested) {
    save_checkpoint(path,
                    {.step = trainer.steps_done(),
                     .seed = seed_,
                     .model = model_.text,
                     .fingerprint = fingerprint(model_.network),
                     .images_seen = seen_before_ + trainer.steps_done() * training_.batch,
                     .preparation = preparation_,
                     .tested = tested},
                    trainer.execution().parameters(),
                    trainer.optimizer(),
                    communicator_);
  }

  // Where it cannot be written either, the checkpoint of before stays.
  void keep_what_was_learnt(Trainer& trainer, Index first_step) {
    if (trainer.steps_done() == first_step) {
      return;
    }
    const bool there =
        communicator_.share(communicator_.rank() == 0 && is_run_folder_there() ? 1 : 0) != 0;
    if (!there) {
      rescue(trainer);
    }
    try {
      save(trainer);
    } catch (const AgreedError&) {  // the first error says more
    }
  }

  // Saves beside the run folder, which is gone, and says so.
  [[noreturn]] void rescue(Trainer& trainer) {
    trainer.expect_finite_parameters();
    for (int attempt = 0; attempt < RunFolder::kRescueAttempts; ++attempt) {
      std::filesystem::path rescued;
      try {
        on_root([&] {
          rescued = folder_->make_rescue_folder(attempt);
          metrics_->copy_to(rescued / "metrics.jsonl");
        });
        save_into(rescued / "checkpoint.safetensors", trainer, std::nullopt);
      } catch (const AgreedError&) {
        continue;  // no room there either
      }
      throw AgreedError(
          fmt::format("{}: {}; what was learnt until step {} is saved in {}; to go on: {}",
                      command_.run,
                      kGone,
                      trainer.steps_done(),
                      rescued.string(),
                      command_to_resume_in(rescued.string(),
                                           started_command(),
                                           communicator_.size(),
                                           (rescued / "checkpoint.safetensors").string())));
    }
    throw AgreedError(
        fmt::format("{}: {}; what was learnt could be saved nowhere else", command_.run, kGone));
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
    on_root([&] {
      write_atomically(folder_->file("memory.json"), json);
      say(memory_table(json));
    });
  }

  void say_what_is_next(Index step) const {
    if (communicator_.rank() == 0) {
      say(closing_lines(command_, best_, step));
    }
  }

  TrainCommand command_;
  const Communicator& communicator_;
  LastCheckpoint& saved_;
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
  Index seen_before_ = 0;  // images, beyond those of all steps at this run's batch
  Index pictures_ = 0;
  TrainingLength length_;
  std::optional<BestSoFar> best_;
  std::optional<RunFolder> folder_;  // rank 0
  StepComparison step_comparison_;   // rank 0
  std::optional<Metrics> metrics_;   // rank 0
};

}  // namespace

void run_train(const TrainCommand& command, const Communicator& communicator) {
  LastCheckpoint saved;
  const Watchdog watchdog = watch(communicator, command.stall_timeout_s, &saved);
  TrainingRun(command, communicator, saved).run();
}

}  // namespace tessera::engine
