#include <filesystem>
#include <fmt/format.h>
#include <optional>
#include <unistd.h>

#include "engine/cli/commands.h"
#include "engine/cli/planning.h"
#include "engine/cli/setup.h"
#include "engine/comm/agreement.h"
#include "engine/execution/system_memory.h"
#include "engine/files/atomic_file.h"
#include "engine/train/checkpoint.h"
#include "engine/train/run_report.h"
#include "partitioner/plan_report.h"

namespace engine {

using partitioner::InputError;

namespace {

// What the command line changes about what the model file says.
partitioner::TrainingOptions training_options(const TrainCommand& command,
                                              const partitioner::ModelFile& model) {
  partitioner::TrainingOptions training = model.training;
  if (command.batch > 0) {
    training.batch = command.batch;
    training.subdivisions = 1;
  }
  if (command.subdivisions > 0) {
    training.subdivisions = command.subdivisions;
  }
  if (training.batch % training.subdivisions != 0) {
    throw InputError(command.model,
                     0,
                     fmt::format("a batch of {} images does not divide into {} subdivisions: give "
                                 "others with --batch and --subdivisions",
                                 training.batch,
                                 training.subdivisions));
  }
  if (command.schedule_steps > 0) {
    training.max_batches = command.schedule_steps;
  }
  return training;
}

// All of a training run: what is fixed when it starts, and its course.
class TrainingRun {
 public:
  TrainingRun(const TrainCommand& command, const Communicator& communicator)
      : command_(command),
        communicator_(communicator),
        model_(load_model(command.model, communicator)),
        training_(agreed(communicator, [&] { return training_options(command, model_); })),
        partition_(choose()),
        plan_(make_plan(model_.network, partition_, pass_images())),
        seed_(choose_seed()),
        stored_(read_stored()),
        rules_(choose_rules()) {}

  void run() {
    warn_of_idle_ranks(partition_, communicator_);
    warn_of_testing_batch();
    expect_memory(model_.network, plan_, planned_options(), communicator_);
    Feed training = feed(Split::Train);
    std::optional<Feed> testing;
    if (command_.evaluate) {
      testing.emplace(feed(Split::Test));
    }
    set_length(training.size());
    preparation_ = preparation_of(rules_, training.class_names());
    compare_classes();
    const Index program_bytes = resident_bytes();
    Trainer trainer(model_.network,
                    plan_,
                    communicator_,
                    {training_, parse_batch_norm(command_.batch_norm), seed_});
    start(trainer);
    open_run_folder(trainer.steps_done());
    const Index first_step = trainer.steps_done();
    Progress progress(progress_style(), trainer.steps_done(), last_step_);
    try {
      while (trainer.steps_done() < last_step_) {
        step(trainer, training, testing, progress);
      }
    } catch (const Diverged&) {
      throw;
    } catch (const AgreedError&) {  // a picture, or the disk
      keep_what_was_learnt(trainer, first_step);
      throw;
    }
    partitioner::MemoryUse memory =
        measured_memory(trainer.execution().memory(), trainer.optimizer().bytes());
    memory.pictures = training.bytes() + (testing ? testing->bytes() : 0);
    memory.program = program_bytes;
    report_memory(memory);
  }

 private:
  void step(Trainer& trainer, Feed& training, std::optional<Feed>& testing, Progress& progress) {
    const StepResult result = trainer.step(training);
    const Index step = trainer.steps_done();
    on_root([&] {
      metrics_->add_step(step, result, training_.batch);
      progress.step(step, result, training_.batch);
    });
    if (testing && (step % epoch_steps_ == 0 || step == last_step_)) {
      const EvaluationResult evaluation = evaluate(trainer.execution(), *testing);
      const double epoch =
          static_cast<double>(step * training_.batch) / static_cast<double>(pictures_);
      on_root([&] {
        metrics_->add_evaluation(step, epoch, evaluation);
        progress.evaluation(step, epoch, evaluation);
      });
    }
    if (step % checkpoint_steps() == 0 || step == last_step_) {
      save(trainer);
    }
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
    const Workload workload{.model = command_.model,
                            .batch = pass_images(),
                            .passes = training_.subdivisions,
                            .adam = training_.adam};
    return agreed_partition(model_.network, command_.partition, workload, communicator_);
  }

  [[nodiscard]] std::uint64_t choose_seed() const {
    if (command_.seed || command_.resume.empty()) {
      return command_.seed.value_or(1);
    }
    return checkpoint_seed(command_.resume, communicator_);
  }

  // How the pictures of the weights that training begins with were prepared.
  [[nodiscard]] std::optional<Preparation> read_stored() const {
    const std::string& start = command_.resume.empty() ? command_.weights : command_.resume;
    return start.empty() ? std::nullopt : stored_preparation(start, communicator_);
  }

  [[nodiscard]] RenderingRules choose_rules() const {
    const PixelConvention given{command_.mean, command_.stddev};
    if (command_.resume.empty()) {
      return rules_for_weights(command_.weights, stored_, model_, given, communicator_);
    }
    RenderingRules rules = rendering_rules(model_, convention_in_effect(given, stored_));
    if (stored_) {
      refuse_to_resume(pixel_difference(*stored_, preparation_of(rules, {})),
                       "leave out --mean and --std and give the model that it was trained with");
    }
    return rules;
  }

  // Outputs that begin to mean other classes are no resumed training.
  void compare_classes() const {
    const auto difference = stored_ ? class_difference(*stored_, preparation_) : std::nullopt;
    if (!command_.resume.empty()) {
      refuse_to_resume(difference, "give the data set that it was trained on");
    } else if (difference) {
      warn(fmt::format("{} {}: training goes on for the classes of {}",
                       command_.weights,
                       *difference,
                       command_.data),
           communicator_);
    }
  }

  void refuse_to_resume(const std::optional<std::string>& difference,
                        const std::string& remedy) const {
    if (difference) {
      throw AgreedError(
          fmt::format("{}: {}: {}, or start anew from its weights with --weights instead of "
                      "--resume",
                      command_.resume,
                      *difference,
                      remedy));
    }
  }

  void warn_of_testing_batch() const {
    if (model_.training.batch == 1 && command_.batch == 0) {
      warn(fmt::format("{} says batch=1, as files for testing do: training goes one image a step; "
                       "give --batch B for more",
                       command_.model),
           communicator_);
    }
  }

  [[nodiscard]] Feed feed(Split split) const {
    auto source = agreed(communicator_, [&]() -> std::optional<BatchSource> {
      if (!Feed::reads(plan_, communicator_.rank())) {
        return std::nullopt;
      }
      Dataset dataset = open_labelled(command_.data, split, model_.network, command_.model);
      BatchOptions options{rules_, pass_images(), seed_, split};
      return std::optional<BatchSource>(std::in_place, std::move(dataset), options, command_.model);
    });
    return Feed(std::move(source), plan_, communicator_);
  }

  // How many steps there are: --steps, --epochs, or what the model file says.
  void set_length(Index pictures) {
    pictures_ = pictures;
    epoch_steps_ = std::max<Index>(1, (pictures + training_.batch - 1) / training_.batch);
    last_step_ = command_.steps;
    if (command_.epochs > 0) {
      last_step_ = (command_.epochs * pictures + training_.batch - 1) / training_.batch;
    }
    if (last_step_ == 0) {
      last_step_ = training_.max_batches;
    }
    if (last_step_ == 0) {
      throw AgreedError(
          fmt::format("{}: no max_batches in [net]: say how long to train with --steps or --epochs",
                      command_.model));
    }
    if (training_.max_batches == 0) {
      training_.max_batches = last_step_;
    }
  }

  void start(Trainer& trainer) {
    if (!command_.weights.empty()) {
      load_weights(command_.weights,
                   model_.network,
                   training_.batch_norm_epsilon,
                   trainer.execution().parameters(),
                   communicator_);
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
    if (state.step >= last_step_) {
      throw AgreedError(
          fmt::format("{}: already at step {} of {}: raise --steps or --epochs to go on",
                      command_.resume,
                      state.step,
                      last_step_));
    }
    trainer.resume_at(state.step);
  }

  void open_run_folder(Index resumed_step) {
    on_root([&] {
      std::error_code error;
      std::filesystem::create_directories(command_.run, error);
      if (error) {
        throw InputError(
            fmt::format("--run {}: cannot make this folder ({}): give one that can be written to",
                        command_.run,
                        error.message()));
      }
      metrics_.emplace(folder() / "metrics.jsonl", resumed_step);
      write_atomically(folder() / "partition.toml", to_text(partition_));
      say(plan_summary(model_.network, plan_, partition_, planned_options()) + "\n");
    });
  }

  [[nodiscard]] std::filesystem::path folder() const { return command_.run; }

  [[nodiscard]] Index checkpoint_steps() const {
    return command_.checkpoint_every > 0 ? command_.checkpoint_every : epoch_steps_;
  }

  [[nodiscard]] ProgressStyle progress_style() const {
    if (command_.progress == "none") {
      return ProgressStyle::None;
    }
    const bool bar =
        command_.progress == "bar" || (command_.progress == "auto" && isatty(STDOUT_FILENO) == 1);
    return bar ? ProgressStyle::Bar : ProgressStyle::Line;
  }

  void save(Trainer& trainer) {
    trainer.expect_finite_parameters();
    save_checkpoint(folder() / "checkpoint.safetensors",
                    {.step = trainer.steps_done(),
                     .seed = seed_,
                     .model = model_.text,
                     .fingerprint = fingerprint(model_.network),
                     .images_seen = seen_before_ + trainer.steps_done() * training_.batch,
                     .preparation = preparation_},
                    trainer.execution().parameters(),
                    trainer.optimizer(),
                    communicator_);
    // They are not saved: so training goes on from here as it would from the checkpoint.
    trainer.execution().parameters().forget_remainders();
  }

  // Where it cannot be written either, the checkpoint of before stays.
  void keep_what_was_learnt(Trainer& trainer, Index first_step) {
    if (trainer.steps_done() == first_step) {
      return;
    }
    try {
      save(trainer);
    } catch (const AgreedError&) {  // the first error says more
    }
  }

  [[nodiscard]] partitioner::ReportOptions planned_options() const {
    partitioner::ReportOptions options =
        report_options(command_.model, model_.network, plan_, training_.adam);
    options.memory.picture_batches += command_.evaluate ? 1 : 0;  // those to test with
    return options;
  }

  void report_memory(const partitioner::MemoryUse& measured) {
    const std::string json = memory_json(
        planned_memory_of_ranks(model_.network, plan_, planned_options()), measured, communicator_);
    on_root([&] {
      write_atomically(folder() / "memory.json", json);
      say(memory_table(json));
    });
  }

  TrainCommand command_;
  const Communicator& communicator_;
  partitioner::ModelFile model_;
  partitioner::TrainingOptions training_;
  partitioner::Partition partition_;
  partitioner::Plan plan_;
  std::uint64_t seed_;
  std::optional<Preparation> stored_;  // of the weights that training begins with
  RenderingRules rules_;
  Preparation preparation_;
  Index seen_before_ = 0;  // images, beyond those of all steps at this run's batch
  Index pictures_ = 0;
  Index epoch_steps_ = 1;
  Index last_step_ = 0;
  std::optional<Metrics> metrics_;  // rank 0
};

}  // namespace

void run_train(const TrainCommand& command, const Communicator& communicator) {
  TrainingRun(command, communicator).run();
}

}  // namespace engine
