#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <optional>
#include <set>

#include "engine/cli/closing_lines.h"
#include "engine/cli/commands.h"
#include "engine/cli/data_needs.h"
#include "engine/cli/data_setup.h"
#include "engine/cli/mapped_data.h"
#include "engine/cli/own_data.h"
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
#include "engine/cli/training_start.h"
#include "engine/cli/trial_runs.h"
#include "engine/cli/version.h"
#include "engine/comm/agreement.h"
#include "engine/comm/mpi_session.h"
#include "engine/system/stop_request.h"
#include "engine/system/system_memory.h"
#include "engine/train/carried_state.h"
#include "engine/train/checkpoint.h"
#include "engine/train/classification_metrics.h"
#include "engine/train/pass_end.h"
#include "engine/train/run_record.h"
#include "engine/train/run_report.h"
#include "engine/train/run_story.h"
#include "engine/train/training_phase.h"
#include "engine/train/training_run.h"
#include "engine/train/weights_file.h"
#include "partitioner/base/printable.h"
#include "partitioner/report/plan_report.h"
#include "partitioner/report/plan_words.h"

namespace tessera::engine {

using partitioner::printable;

namespace {

constexpr const char* kStopNotice =
    "tessera: stopping after this step; a second signal exits at once, without saving\n";

// Training as the command line asks for it: all that a TrainingRun is made of, and what is printed.
class TrainRun {
 public:
  // With a chooser, it says which partition to train by, after some trials; null: the command does.
  TrainRun(const TrainCommand& command,
           const Communicator& communicator,
           LastCheckpoint& saved,
           RunStory& story,
           PartitionChooser* chooser)
      : command_(command),
        communicator_(communicator),
        saved_(saved),
        story_(story),
        chooser_(chooser),
        model_(model_to_train(command, communicator)),
        training_(agreed(communicator, [&] { return training_options(command, model_); })),
        mapped_(map_of_data()),
        data_(list_before_choosing()),
        needs_(data_ ? std::optional(needs()) : std::nullopt),
        partition_(choose()),
        plan_(make_plan(model_.network, partition_, places())),
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
    if (!command_.partition.automatic()) {
      say_what_is_not_exact(inexact());
    }
    if (chooser_ == nullptr) {
      warn_of_idle_ranks(partition_, communicator_);
    }
    warn_of_testing_batch(command_, model_, communicator_);
    if (!data_) {
      data_.emplace(listed_data(DataLoader::reads(plan_, communicator_.rank())));
      needs_ = needs();
    }
    expect_memory(model_.network, plan_, planned_options(plan_), communicator_);
    record_.emplace(record_options(), communicator_);
    const Index program_bytes = resident_bytes() - data_->bytes();
    OpenedData data = std::move(*data_).open();
    const std::shared_ptr<BatchSource> training = source(begin_to_map(data), Split::Train);
    sources_.training = training;
    move_samples(training, data.testing);
    sources_.testing = source(std::move(data.testing), Split::Test);
    sources_.tests = command_.evaluate;
    learn_of_pictures();
    if (chooser_ != nullptr) {
      chooser_->expect_feasible(run_size(), communicator_);
    }
    begin_phase(std::move(plan_), communicator_);
    begun_ = start(phase_->trainer());
    warn_of_zero_rate(command_, training_, begun_.step, length_.last_step, communicator_);
    record_->begin(model_.network, partition_, begun_.step, testing_.class_names);
    if (mapped_) {
      record_->write(kDataMapFile, mapped_->text());
    }
    if (chooser_ == nullptr) {
      say_plan();
    }
    begin_story();
    if (move_) {
      take_steps_while_samples_move();
    }
    if (!moved_.empty()) {
      story_.tell("move", moved_);
    }
    if (chooser_ != nullptr) {
      choose_by_trials();
      say_plan();
    }
    if (!command_.rebalance || !take_rebalanced_steps()) {
      take_steps([](TrainingRun& run, const char* notice) { run.run(notice); });
    }
    if (changes_partition()) {
      record_->finish_monitor();
    }
    partitioner::MemoryUse memory = allocated();
    memory.program = program_bytes;
    report_memory(memory);
    on_root(communicator_, [&] {
      say(step_comparison_.line(model_.network, command_.partition, workload(), partition_));
    });
    sent_bytes_ += phase_ ? phase_->trainer().sent_bytes() : 0;
    story_.sent_bytes(sum_over_ranks(communicator_, static_cast<double>(sent_bytes_)));
    story_.end("finished", "");
    say_what_is_next(communicator_.share(phase_ ? phase_->trainer().steps_done() : 0));
  }

  void say_plan() const {
    on_root(communicator_, [&] {
      say(plan_summary(
              model_.network, phase_->plan(), partition_, planned_options(phase_->plan())) +
          "\n");
    });
  }

  // What loaders tell all ranks of the pictures.
  void learn_of_pictures() {
    const DataLoader training(sources_.training, plan_, communicator_);
    training_pictures_ = {training.size(), training.class_names()};
    if (sources_.tests) {
      const DataLoader testing(sources_.testing, plan_, communicator_);
      testing_ = {testing.size(), testing.class_names()};
    }
    length_ = training_length(command_, training_pictures_.count, training_);
    preparation_ = preparation_of(rules_, training_pictures_.class_names);
    compare_classes(command_, before_, preparation_, communicator_);
  }

  void begin_phase(partitioner::Plan plan, const Communicator& communicator) {
    phase_.emplace(
        model_.network,
        std::move(plan),
        communicator,
        TrainerOptions{training_, parse_batch_norm(command_.batch_norm), seed_, local_after()},
        sources_);
  }

  // Training goes on by another partition: ranks without a tile take no part, but for rank 0, which
  // has the run's folder, and who reads pictures for all.
  void change_to(const partitioner::Partition& partition,
                 const std::optional<double>& predicted_s) {
    partitioner::Plan plan = make_plan(model_.network, partition, pass_images());
    std::set<int> ranks{0};
    for (const int rank : busy_ranks(partition)) {
      ranks.insert(rank);
    }
    if (partition.reader != partitioner::kEveryRank) {
      ranks.insert(partition.reader);
    }
    const CarriedState state(phase_ ? phase_->plan() : carried_plan_,
                             phase_ ? &phase_->trainer() : nullptr);
    sent_bytes_ += phase_ ? phase_->trainer().sent_bytes() : 0;
    phase_.reset();
    const bool takes_part = ranks.count(communicator_.rank()) > 0;
    if (takes_part) {
      begin_phase(plan, communicator_.among({ranks.begin(), ranks.end()}));
    }
    state.give(plan, takes_part ? &phase_->trainer() : nullptr, communicator_);
    partition_ = partition;
    step_comparison_ = {};
    carried_plan_ = std::move(plan);
    resting_ = static_cast<int>(ranks.size()) < communicator_.size();
    if (phase_) {
      PredictedSteps predicted;
      std::string planned;
      on_root(phase_->communicator(), [&] {
        predicted = predicted_steps(
            command_.partition, model_.network, workload(), partition_, phase_->plan());
        predicted.step_s = predicted_s ? predicted_s : predicted.step_s;
        planned = plan_json(model_.network, phase_->plan(), planned_options(phase_->plan()));
      });
      story_.go_on(planned, std::move(predicted), phase_->trainer(), length_.last_step);
    }
  }

  void choose_by_trials() {
    const OrderlyStop orderly(communicator_.rank() == 0 ? kStopNotice : nullptr);
    carried_plan_ = phase_->plan();
    const MeterReading mine = record_->meter_reading();
    const std::vector<int> metered =
        communicator_.of_ranks(mine.board.is_there || mine.cluster.is_there ? 1 : 0);
    TrialRuns runs{
        .communicator = communicator_,
        .size = run_size(),
        .metered = std::find(metered.begin(), metered.end(), 1) != metered.end(),
        .change_to = [this](const auto& partition,
                            const auto& predicted_s) { change_to(partition, predicted_s); },
        .take_steps = [this](Index steps) { return try_steps(steps); },
        .write = [this](const char* name, const std::string& text) { record_->write(name, text); },
        .tell = [this](const std::string& kind,
                       const std::string& text) { story_.tell(kind, text); }};
    chooser_->choose(runs);
    record_->write("partition.toml", to_text(partition_));
  }

  // Whether ranks may come to take no part.
  [[nodiscard]] bool changes_partition() const { return chooser_ != nullptr || command_.rebalance; }

  // All but the last step, by partitions that follow the speed of devices. Returns whether that was
  // enough training.
  [[nodiscard]] bool take_rebalanced_steps() {
    constexpr Index kFirstWindow = 5;  // steps
    const OrderlyStop orderly(communicator_.rank() == 0 ? kStopNotice : nullptr);
    carried_plan_ = phase_ ? phase_->plan() : carried_plan_;
    const Workload load = workload();
    Rebalancer rebalancer(model_.network, command_.partition, load, communicator_);
    struct Window {
      Index step = 0;
      double step_s = 0;
      bool enough = false;
    };
    Window window{.step = communicator_.share(phase_ ? phase_->trainer().steps_done() : 0)};
    Index steps = kFirstWindow;
    while (!window.enough && window.step + 1 < length_.last_step) {
      double computing_s = 0;
      double seconds = 0;
      const Index first = window.step;
      take_steps([&](TrainingRun& run, const char* notice) {
        run.add({.step = [&](Index step, const StepResult& result) {
          if (step == first + 1 && steps > 1) {  // the first one of a partition warms up
            return;
          }
          computing_s += result.times.computing_s();
          seconds += result.times.step_s;
        }});
        run.run_until(first + steps, notice);
        window.enough = run.is_enough();
        if (window.enough) {
          run.run(notice);  // what comes at the end
        }
        window.step = phase_->trainer().steps_done();
      });
      window = communicator_.share(window);
      const auto counted = static_cast<double>(std::max<Index>(window.step - first - 1, 1));
      window.step_s = communicator_.share(seconds / counted);
      if (!window.enough && window.step_s > 0) {
        if (const auto next = rebalancer.next(
                partition_, computing_s / counted, length_.last_step - window.step)) {
          go_on_by(*next, rebalancer.reason());
        }
      }
      if (window.step_s > 0) {
        steps = std::max<Index>(
            kFirstWindow,
            static_cast<Index>(static_cast<double>(command_.rebalance_s) / window.step_s));
      }
    }
    return window.enough;
  }

  void go_on_by(const partitioner::Partition& partition, const std::string& reason) {
    change_to(partition, std::nullopt);
    record_->write("partition.toml", to_text(partition_));
    on_root(communicator_, [&] {
      const std::string text = "another partition: " + reason;
      story_.tell("rebalance", text);
      say(printable(text) + "\n" +
          plan_summary(
              model_.network, phase_->plan(), partition_, planned_options(phase_->plan())) +
          "\n");
    });
  }

  [[nodiscard]] RunSize run_size() const {
    return {.steps = length_.last_step,
            .first_step = begun_.step,
            .epoch_steps = length_.epoch_steps,
            .testing_steps =
                static_cast<double>(testing_.count) / static_cast<double>(training_.batch)};
  }

  // Steps of the run that are timed, all but the first one.
  TrialMeasurement try_steps(Index steps) {
    TrialMeasurement mine;
    const Index first = phase_ ? phase_->trainer().steps_done() : 0;
    MeterReading before = record_->meter_reading();
    take_steps([&](TrainingRun& run, const char* notice) {
      StepTimes sum;
      run.add({.step = [&](Index step, const StepResult& result) {
        if (step == first + 1 && steps > 1) {
          before = record_->meter_reading();
          return;
        }
        mine.step_s.push_back(result.times.step_s);
        sum.step_s += result.times.step_s;
        sum.waiting_s += result.times.waiting_s;
      }});
      run.run_until(first + steps, notice);
      mine.computing = sum.step_s > 0 ? 1 - sum.waiting_s / sum.step_s : 0;
    });
    const MeterReading after = record_->meter_reading();
    mine.board = measured_power(before.board, after.board);
    mine.cluster = measured_power(before.cluster, after.cluster);
    return mine;
  }

  // Takes steps by those who take part; the others rest meanwhile. `work` is done with the run.
  template <class Work>
  void take_steps(const Work& work) {
    const auto take = [&] {
      Trainer& trainer = phase_->trainer();
      TrainingRun run(trainer, phase_->training(), length_);
      ClassificationMetrics metric = class_metric(model_.network);
      run.goes_on_from(begun_.step);
      if (phase_->testing() != nullptr) {
        run.test_on(*phase_->testing(), metric);
      }
      constexpr int kUsualColumns = 80;
      Progress progress(progress_style(),
                        trainer.steps_done(),
                        length_.last_step,
                        watched_columns().value_or(kUsualColumns));
      add_observers(run, progress);
      try {
        work(run, communicator_.rank() == 0 ? kStopNotice : nullptr);
      } catch (const Stopped& stopped) {
        throw Stopped(stopped.signal(), what_was_saved(stopped.signal(), trainer.steps_done()));
      }
    };
    if (!changes_partition()) {
      take();
      return;
    }
    try {
      while_others_rest(communicator_, phase_.has_value(), resting_, take);
    } catch (const Stopped&) {
      record_->finish_monitor();
      throw;
    }
  }

  void add_observers(TrainingRun& run, Progress& progress) {
    if (communicator_.rank() == 0) {
      run.add(printing(progress));
    }
    run.add(record_->observer(phase_->trainer(), begun_));
    run.add(story_.observer());
    run.add({.checkpoint =
                 [this](Index step) { saved_.set(record_->checkpoint_file().string(), step); },
             .enough = [this] { return is_out_of_patience(); }});
  }

  // What this rank has allocated, but for the program.
  [[nodiscard]] partitioner::MemoryUse allocated() {
    if (!phase_) {
      return {};
    }
    Trainer& trainer = phase_->trainer();
    partitioner::MemoryUse memory =
        measured_memory(trainer.execution().memory(), trainer.optimizer().bytes());
    memory.messages += trainer.synchronisation_bytes();
    memory.data += moving_bytes_;
    for (const DataLoader* loader : {&phase_->training(), phase_->testing()}) {
      if (loader != nullptr) {
        memory.pictures += loader->bytes();
        memory.decoding += loader->decoding_bytes();
        memory.data += loader->data_bytes();
      }
    }
    return memory;
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
            .some_rest = changes_partition(),
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

  void begin_story() {
    RunStory::Start start;
    const partitioner::Plan& plan = phase_->plan();
    on_root(communicator_, [&] {
      const Index limit = command_.partition.memory_limit_mib << 20U;
      start.folder = command_.run;
      start.predicted =
          predicted_steps(command_.partition, model_.network, workload(), partition_, plan);
      start.summary = {.version = program_version(),
                       .model = command_.model,
                       .data = command_.data,
                       .command = started_line(started_command()),
                       .last_step = length_.last_step,
                       .epoch_steps = length_.epoch_steps,
                       .batch = training_.batch,
                       .seed = seed_,
                       .replicas = plan.replicas.count,
                       .sync = to_text(plan.replicas.sync),
                       .gradient_precision = to_text(partition_.gradient_reduction.compression),
                       .inexact = inexact(),
                       .training_pictures = training_pictures_.count,
                       .testing_pictures = testing_.count,
                       .class_names = training_pictures_.class_names,
                       .ranks = {},
                       .predicted_step_s = start.predicted.step_s,
                       .memory_limit_bytes = limit > 0 ? std::optional(limit) : std::nullopt};
      start.plan_json = plan_json(model_.network, plan, planned_options(plan));
    });
    story_.begin(std::move(start), *record_, phase_->trainer(), length_.last_step);
  }

  [[nodiscard]] std::optional<MappedData> map_of_data() const {
    if (command_.data_map.empty()) {
      return std::nullopt;
    }
    return std::optional<MappedData>(std::in_place, command_, pass_images(), communicator_);
  }

  // The data set for training, before samples move.
  [[nodiscard]] std::optional<Dataset> begin_to_map(OpenedData& data) const {
    warn_of_other_data_map(
        command_.resume, mapped_ ? mapped_->text() : std::string(), communicator_);
    if (mapped_) {
      mapped_->make_room(*data.training);
    }
    return std::move(data.training);
  }

  // To where the data map says. Each rank then trains on its part.
  void move_samples(const std::shared_ptr<BatchSource>& training,
                    const std::optional<Dataset>& testing) {
    if (!mapped_) {
      return;
    }
    move_ = mapped_->move(command_.run, progress_style(), early_steps() > 0, training);
    if (early_steps() == 0) {
      finish_move(0);
    }
    if (testing) {
      mapped_->test_on(testing->size());
    }
  }

  // Steps that may run while samples move. The loader reads a pass ahead.
  [[nodiscard]] Index early_steps() const {
    const bool may = mapped_ && command_.resume.empty() && MpiSession::threads_may_call();
    return may ? std::max<Index>(0, (mapped_->early_passes() - 1) / training_.subdivisions) : 0;
  }

  void take_steps_while_samples_move() {
    const Index most = std::min(early_steps(), length_.last_step - 1);
    Index step = 0;
    take_steps([&](TrainingRun& run, const char* notice) {
      while (step < most && !move_->look(most)) {
        run.run_until(++step, notice);
      }
    });
    phase_->training().finish_reading();
    finish_move(step);
  }

  void finish_move(Index steps) {
    moved_ = move_->finish(steps);
    moving_bytes_ = early_steps() > 0 ? move_->bytes() : 0;  // beside all that training takes
    move_.reset();
    on_root(communicator_, [&] { say(mapped_->sizes() + "\n"); });
  }

  // Of the partition that there is; before anything else is said.
  [[nodiscard]] std::vector<std::string> inexact() const {
    return partitioner::inexact_words(
        model_.network, partition_.replicas, partition_.gradient_reduction.compression);
  }

  void say_what_is_not_exact(const std::vector<std::string>& words) const {
    on_root(communicator_, [&] {
      if (!words.empty()) {
        say(fmt::format("Not exact: {}\n", fmt::join(words, "; ")));
      }
    });
  }

  // Where a search will choose the partition, also by what pictures take.
  [[nodiscard]] std::optional<ListedData> list_before_choosing() const {
    const auto reads = reads_before_search(command_.partition, communicator_);
    if (reads) {
      const auto replicas =
          agreed(communicator_, [&] { return parse_replicas(command_.partition); });
      say_what_is_not_exact(partitioner::inexact_words(
          model_.network,
          replicas,
          partitioner::compression_named(command_.partition.gradient_precision)
              .value_or(partitioner::Compression::Exact)));
    }
    return reads ? std::optional(listed_data(*reads)) : std::nullopt;
  }

  [[nodiscard]] ListedData listed_data(bool reads) const {
    DataChoice choice{.path = command_.data,
                      .model = command_.model,
                      .training = true,
                      .testing = command_.evaluate,
                      .skip_broken = command_.skip_broken};
    if (mapped_) {
      choice.path = path_of_rank(command_.data, communicator_.rank());
      choice.own = mapped_->own_part();
      expect_own_path(choice.path, communicator_);
    }
    return ListedData(std::move(choice), model_.network, reads, communicator_);
  }

  [[nodiscard]] DataNeeds needs() const {
    DataNeeds needs = data_->needs(rendering_rules(model_));
    needs.data_bytes += early_steps() > 0 ? SampleMove::kBackgroundBytes : 0;
    expect_data_fits(needs, command_.partition.memory_limit_mib << 20U);
    return needs;
  }

  [[nodiscard]] Index pass_images() const { return training_.batch / training_.subdivisions; }
  // What the plan has room for: where shares of ranks change from pass to pass, more than a pass
  // has.
  [[nodiscard]] Index places() const { return mapped_ ? mapped_->places() : pass_images(); }

  [[nodiscard]] partitioner::Partition choose() const {
    throw_agreed(communicator_, problem_of([&] { expect_loss(model_.network, command_.model); }));
    if (chooser_ != nullptr) {
      partitioner::TrainingOptions training = training_;
      const Index steps = training_length(command_, data_->training_pictures(), training).last_step;
      return chooser_->first_partition(model_.network, workload(), steps, communicator_);
    }
    if (!mapped_) {
      return agreed_partition(
          model_.network, command_.partition, workload(pass_images()), communicator_);
    }
    const PartitionChoice choice = MappedData::choice(command_.partition);
    partitioner::Partition shared = mapped_->shared(
        agreed_partition(model_.network, choice, workload(pass_images()), communicator_));
    throw_agreed(communicator_, problem_of([&] {
                   validate(shared, model_.network, places(), "--data-map");
                   limit_workspace(model_.network, choice, places(), shared);
                 }));
    return shared;
  }

  [[nodiscard]] Workload workload() const { return workload(places()); }

  [[nodiscard]] Workload workload(Index images) const {
    return {.model = command_.model,
            .batch = images,
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

  // Steps in which a post-local run averages gradients; a run that goes on keeps to what it had.
  [[nodiscard]] Index local_after() const {
    if (partition_.replicas.sync.mode != partitioner::SyncMode::PostLocal) {
      return 0;
    }
    const Index before =
        command_.resume.empty() ? 0 : checkpoint_post_local_steps(command_.resume, communicator_);
    if (command_.local_after > 0) {
      if (before > 0 && command_.local_after != before) {
        throw AgreedError(
            fmt::format("{} is of a run whose replicas part after step {}: leave out --local-after",
                        command_.resume,
                        before));
      }
      return command_.local_after;
    }
    return before > 0 ? before : std::max<Index>(length_.last_step / 2, 1);
  }

  // `dataset` on ranks that read.
  [[nodiscard]] std::shared_ptr<BatchSource> source(std::optional<Dataset> dataset,
                                                    Split split) const {
    return agreed(communicator_, [&]() -> std::shared_ptr<BatchSource> {
      if (!dataset) {
        return nullptr;
      }
      BatchOptions options{rules_, pass_images(), seed_, split};
      if (mapped_) {
        mapped_->share(options, *dataset);
      }
      return std::make_shared<BatchSource>(std::move(*dataset), options, command_.model);
    });
  }

  // Gives the trainer the weights that training begins with.
  [[nodiscard]] TrainingState start(Trainer& trainer) {
    TrainingState begun{.seed = seed_,
                        .model = model_.text,
                        .fingerprint = fingerprint(model_.network),
                        .preparation = preparation_,
                        .last_frozen = last_frozen(model_.network),
                        .post_local_steps = trainer.options().post_local_steps};
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
                                                trainer.rank_state(),
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
    if (state.rank_states == TrainingState::RankStates::OfAnotherPlan) {
      warn(
          fmt::format("{}: what its ranks had of their own is of another partition: all start from "
                      "the weights that they had in common",
                      command_.resume),
          communicator_);
    }
    trainer.resume_at(state.step, state.rank_states == TrainingState::RankStates::Restored);
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

  [[nodiscard]] partitioner::ReportOptions planned_options(const partitioner::Plan& plan) const {
    partitioner::ReportOptions options =
        report_options(command_.model, model_.network, plan, training_.adam);
    options.memory.picture_batches += command_.evaluate ? 1 : 0;  // those to test with
    options.memory.decoding_bytes = needs_ ? needs_->decoding_bytes : 0;
    options.memory.data_bytes = needs_ ? needs_->data_bytes : 0;
    return options;
  }

  void report_memory(const partitioner::MemoryUse& measured) {
    const partitioner::Plan& plan = phase_ ? phase_->plan() : carried_plan_;
    const std::string json =
        memory_json(planned_memory_of_ranks(model_.network, plan, planned_options(plan)),
                    measured,
                    communicator_);
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

  struct Pictures {
    Index count = 0;
    std::vector<std::string> class_names;
  };

  TrainCommand command_;
  const Communicator& communicator_;
  LastCheckpoint& saved_;
  RunStory& story_;
  PartitionChooser* chooser_;
  partitioner::ModelFile model_;
  partitioner::TrainingOptions training_;
  std::optional<MappedData> mapped_;
  std::optional<ListedData> data_;
  std::optional<DataNeeds> needs_;
  partitioner::Partition partition_;
  partitioner::Plan plan_;  // until the first phase has it
  std::uint64_t seed_;
  std::optional<Preparation> before_;  // of the weights that training begins with
  RenderingRules rules_;
  Preparation preparation_;
  TrainingLength length_;
  PictureSources sources_;
  Pictures training_pictures_;
  Pictures testing_;
  TrainingState begun_;
  std::optional<RunRecord> record_;
  std::unique_ptr<DataMove> move_;  // while samples move
  std::string moved_;               // of a move that is over
  Index moving_bytes_ = 0;
  std::optional<TrainingPhase> phase_;  // nothing on a rank that takes no part
  partitioner::Plan carried_plan_;      // of the phase, on all ranks, where there are several
  bool resting_ = false;                // whether some rank takes no part
  std::int64_t sent_bytes_ = 0;         // of this rank, in phases before
  StepComparison step_comparison_;      // rank 0
};

}  // namespace

void run_train(const TrainCommand& command, const Communicator& communicator) {
  run_train(command, communicator, nullptr);
}

void run_train(const TrainCommand& command,
               const Communicator& communicator,
               PartitionChooser* chooser) {
  if (command.monitor == "off" && !command.meters.empty()) {
    throw AgreedError("--meter is read by the monitor: leave out --monitor off");
  }
  if (command.rebalance && !command.partition.automatic()) {
    throw AgreedError("--rebalance finds partitions as --partition auto does: give that, too");
  }
  if (command.rebalance && command.partition.replicas > 1) {
    throw AgreedError("--rebalance changes the partition, which --replicas needs to stay");
  }
  if (command.local_after > 0 && command.partition.sync.rfind("post-local", 0) != 0 &&
      command.partition.file.empty()) {
    throw AgreedError("--local-after is of --sync post-local:H");
  }
  if ((command.rebalance || chooser != nullptr) &&
      partitioner::compression_named(command.partition.gradient_precision)
          .value_or(partitioner::Compression::Exact)
          .by_runs()) {
    throw AgreedError(
        fmt::format("--gradient-precision {}: what its messages leave out cannot be carried to "
                    "another partition, which {} may go on by",
                    command.partition.gradient_precision,
                    command.rebalance ? "--rebalance" : "choose"));
  }
  if (command.rebalance && !command.data_map.empty()) {
    throw AgreedError("--rebalance moves work, but not the data that --data-map ties it to");
  }
  LastCheckpoint saved;
  RunStory story(communicator);
  saved.on_stall([&story](const std::string& what) { story.end("failed", what); });
  const Watchdog watchdog = watch(communicator, command.stall_timeout_s, &saved);
  TrainRun(command, communicator, saved, story, chooser).run();
}

}  // namespace tessera::engine
