#include "engine/session/session_run.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "engine/comm/agreement.h"
#include "engine/run_files/names.h"
#include "engine/run_files/run_summary.h"
#include "engine/run_log/epoch_end.h"
#include "engine/run_log/memory_record.h"
#include "engine/session/step_prediction.h"
#include "engine/session/training_length.h"
#include "engine/session/training_start.h"
#include "engine/system/exit_code.h"
#include "engine/system/stop_request.h"
#include "engine/system/system_memory.h"
#include "engine/train/pass_end.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/training_figures.h"
#include "partitioner/text/plan_report.h"

namespace tessera::engine {

SessionRun::SessionRun(SessionState& state, TrainingSetup& setup, PartitionChooser* chooser)
    : request_(state.request),
      environment_(state.environment),
      observer_(state.observer),
      messages_(state.observer.messages),
      communicator_(state.communicator),
      setup_(setup),
      run_log_(state.run_log),
      chooser_(chooser),
      partition_(setup.partition()),
      frozen_(frozen_layers(setup.network())),
      phases_(communicator_),
      record_(record_options(), communicator_),
      kept_steps_(environment_.state_folder, messages_) {}

TrainingResult SessionRun::run() {
  try {
    train();
    return {.step = phases_.steps_done(),
            .best = record_.best(),
            .tests_since_best = record_.evaluations_since_best(),
            .risen_loss = figures_ ? figures_->loss().risen() : std::nullopt};
  } catch (const Stopped& stopped) {
    run_log_.end("interrupted", stopped.what(), stopped.exit_code());
    throw;
  } catch (const std::exception& error) {
    run_log_.end("failed", error.what(), exit_code_of(error));
    throw;
  }
}

void SessionRun::train() {
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
    take_steps_with_frozen_layers();
    choose_by_trials();
    say_plan();
  }
  if (!request_.rebalance_window_s || !rebalances_to_the_end()) {
    take_steps_with_frozen_layers();
    take_steps([this](TrainingRun& run) { run.run(stop_notice()); });
  }
  if (changes_phase()) {
    record_.finish_monitor();
  }
  end(program_bytes);
}

PictureSources SessionRun::open_pictures() {
  OpenedData data = setup_.open_data();
  MappedData* mapped = setup_.mapped();
  warn_of_other_data_map(request_.resume,
                         mapped != nullptr ? mapped->text() : std::string(),
                         communicator_,
                         messages_);
  if (mapped != nullptr) {
    mapped->make_room(*data.training);
  }
  setup_.caching().open();
  const std::shared_ptr<BatchSource> training =
      setup_.source(std::move(data.training), Split::Train);
  if (mapped != nullptr) {
    mapped->begin_move(request_.run, observer_.moves, training);
    if (mapped->early_steps() == 0) {
      mapped->finish_move(0, messages_);
    }
    if (data.testing) {
      mapped->test_on(data.testing->size(), messages_);
    }
  }
  PictureSources sources{.training = training,
                         .testing = setup_.source(std::move(data.testing), Split::Test),
                         .tests = request_.evaluate};
  learn_of_pictures(sources);
  if (training) {
    training->end_mosaic(steps_before_last_epochs(setup_.training()));
  }
  on_root(communicator_, [&] {
    if (const std::string kept = setup_.caching().described(); !kept.empty()) {
      messages_.say("pictures are " + kept + "\n");
    }
    if (const std::string large = setup_.caching().warning(); !large.empty()) {
      messages_.warn(large);
    }
    if (const std::string kept = setup_.trunk_caching().described(); !kept.empty()) {
      messages_.say("maps of the frozen layers are " + kept + "\n");
    }
  });
  return sources;
}

void SessionRun::learn_of_pictures(const PictureSources& sources) {
  const DataLoader training(sources.training, setup_.plan(), communicator_);
  training_pictures_ = {training.size(), training.class_names()};
  if (sources.tests) {
    const DataLoader testing(sources.testing, setup_.plan(), communicator_);
    testing_ = {testing.size(), testing.class_names()};
  }
  const auto classes = std::max<std::size_t>(training_pictures_.class_names.size(), 2);
  figures_.emplace(static_cast<double>(losses(setup_.network()).size()) *
                   std::log(static_cast<double>(classes)));
  length_ = setup_.settle_length(training_pictures_.count);
  preparation_ = preparation_of(setup_.rules(), training_pictures_.class_names);
  compare_classes(request_, setup_.before(), preparation_, communicator_, messages_);
}

PhasePlan SessionRun::with_trunk(PhasePlan phase) const {
  phase.trunk = setup_.trunk_caching().options(
      phase.network, phase.plan, trunk_identity_, [this](const std::string& problem) {
        messages_.warn(problem + ": maps of the frozen layers are kept no further");
      });
  return phase;
}

void SessionRun::begin(const PictureSources& sources) {
  const TrainerOptions options{
      setup_.training(),
      setup_.batch_norm(),
      setup_.seed(),
      post_local_steps(request_, partition_.replicas.sync, length_.last_step, communicator_)};
  const auto kept_step = kept_step_to_go_on_from();
  const Index step = step_taken_last(kept_step);
  frozen_until_ = frozen_.end_of(step);
  const TrainingRecord record = setup_.record(training_pictures_.count, data_digest(sources));
  trunk_identity_ = setup_.trunk_identity(record, preparation_);
  phases_.begin(with_trunk(setup_.first_phase_in(step)), options, sources);
  if (setup_.record_before()) {
    for (const std::string& difference : differences(*setup_.record_before(), record)) {
      messages_.warn(request_.resume + " " + difference, communicator_);
    }
  }
  begun_ = begin_training(request_,
                          environment_,
                          {.seed = options.seed,
                           .model = setup_.model().text,
                           .fingerprint = fingerprint(setup_.network()),
                           .preparation = preparation_,
                           .frozen = frozen_,
                           .post_local_steps = options.post_local_steps,
                           .record = record},
                          phases_.now()->trainer(),
                          kept_step,
                          communicator_,
                          messages_);
  if (!request_.resume.empty() || begun_.step > 0) {
    owed_.epoch = owes_epoch(begun_.step);
    const bool all_done =
        begun_.step == length_.last_step && !owed_.epoch && has_told_end(begun_.step);
    if (begun_.step > length_.last_step || (all_done && !environment_.started_again)) {
      throw AgreedError(
          fmt::format("{}: already at step {} of {}: raise --steps or --epochs to continue",
                      request_.resume,
                      begun_.step,
                      length_.last_step));
    }
    if (observer_.checkpoint && !request_.resume.empty()) {
      observer_.checkpoint(request_.resume, begun_.step);
    }
  }
  warn_of_early_end(request_, setup_.training(), length_.last_step, communicator_, messages_);
  remember_first_loss();
  warn_of_zero_rate(
      request_, setup_.training(), begun_.step, length_.last_step, communicator_, messages_);
  on_root(communicator_, [&] {
    const auto metrics = std::filesystem::path(request_.run) / run_file::kMetrics;
    const Index before = environment_.started_again ? last_recorded_step(metrics).value_or(0) : 0;
    faults_.emplace(environment_.faults_file, before, begun_.step);
  });
  record_.begin(setup_.network(),
                partition_,
                begun_.step,
                owed_.epoch,
                testing_.class_names,
                faults_ ? faults_->stood_s() : std::nullopt);
  owed_.checkpoint =
      environment_.started_again && begun_.step > 0 && record_.checkpoint_step() != begun_.step;
  if (setup_.mapped() != nullptr) {
    record_.write(run_file::kDataMap, setup_.mapped()->text());
  }
  say_what_is_frozen();
  if (chooser_ == nullptr) {
    say_plan();
  }
  begin_run_log();
  for (const std::string& damage : record_.damage()) {
    warn(damage);
  }
}

// Asked only where the layers that are frozen depend on it: else whoever restores finds it. 0:
// nothing is kept.
std::optional<Index> SessionRun::kept_step_to_go_on_from() const {
  if (frozen_.at_first.empty() || !environment_.started_again) {
    return std::nullopt;
  }
  return newest_kept_step(
             environment_.state_folder,
             setup_.network(),
             [this](Index step) { return setup_.phase_in(step, partition_).plan; },
             trained_arrays(setup_.training()),
             communicator_)
      .value_or(0);
}

// A run that goes on begins with the network of that step, which has what was learnt in it, and
// changes then as if it had not been interrupted. 1: none was taken yet.
Index SessionRun::step_taken_last(const std::optional<Index>& kept_step) const {
  if (frozen_.at_first.empty() || kept_step.value_or(0) > 0) {
    return kept_step.value_or(1);
  }
  const bool reads = communicator_.rank() == 0 && !request_.resume.empty();
  return std::max<Index>(communicator_.share(reads ? step_of_checkpoint(request_.resume) : 0), 1);
}

void SessionRun::say_what_is_frozen() const {
  if (frozen_until_ > begun_.step) {
    messages_.warn(fmt::format("{}: stopbackward: {}, as with --freeze: they normalise by their "
                               "running statistics (in Darknet by those of the batch)",
                               request_.model,
                               to_text(frozen_)),
                   communicator_);
  }
}

// Of a run that goes on, from its records.
void SessionRun::remember_first_loss() {
  on_root(communicator_, [&] {
    const std::filesystem::path folder = environment_.started_again
                                             ? std::filesystem::path(request_.run)
                                             : std::filesystem::path(request_.resume).parent_path();
    if (begun_.step > 0) {
      if (const auto loss = first_loss(folder / run_file::kMetrics)) {
        figures_->loss().begin_with(*loss);
      }
    }
  });
}

// Of all pictures to train on, as one of the ranks that read them sees it; empty where they lie in
// parts on the ranks, some of which have moved.
std::string SessionRun::data_digest(const PictureSources& sources) const {
  if (setup_.mapped() != nullptr) {
    return "";
  }
  const std::uint64_t mine = sources.training ? sources.training->dataset().digest() : 0;
  for (const std::uint64_t digest : communicator_.of_ranks(mine)) {
    if (digest != 0) {
      return fmt::format("{:016x}", digest);
    }
  }
  return "";
}

// Whether an epoch ended in that step of the run to resume, which was stopped or killed before all
// that its end leaves was on the disk. Without a test that is a row of this very folder.
bool SessionRun::owes_epoch(Index step) const {
  bool owed = false;
  on_root(communicator_, [&] {
    const auto ended_in = [&](const std::filesystem::path& folder) {
      return has_epoch_end(folder, setup_.network(), step, request_.evaluate);
    };
    owed = step > 0 && length_.ends_epoch(step) && (request_.evaluate || record_.goes_on()) &&
           !ended_in(request_.run) &&
           (record_.goes_on() || !ended_in(std::filesystem::path(request_.resume).parent_path()));
  });
  return communicator_.share(owed);
}

// Whether the checkpoint of that step has its event, where it is of this very run, and that has
// come to an end since.
bool SessionRun::has_told_end(Index step) const {
  bool told = true;
  on_root(communicator_, [&] {
    told = !record_.goes_on() ||
           (has_checkpoint_event(std::filesystem::path(request_.run) / run_file::kEvents, step) &&
            state_of_run(request_.run) != "running");
  });
  return communicator_.share(told);
}

void SessionRun::end(Index program_bytes) {
  partitioner::MemoryUse memory = phases_.memory();
  memory.program = program_bytes;
  memory.data += setup_.mapped() != nullptr ? setup_.mapped()->moving_bytes() : 0;
  memory.cache = setup_.caching().memory_bytes() + phases_.trunk_bytes();
  memory.kept = kept_steps_.memory_bytes();
  report_memory(memory);
  on_root(communicator_, [&] {
    messages_.say(
        figures_->line(phases_.network(), request_.partition, setup_.workload(), partition_));
  });
  warn_of_risen_loss();
  warn_of_unequal_copies();
  const SentMessages sent{phases_.steps_done() - begun_.step,
                          communicator_.of_ranks(static_cast<double>(phases_.sent_bytes()))};
  run_log_.sent(sent);
  run_log_.cache(setup_.caching().use());
  if (phases_.now() != nullptr) {
    phases_.now()->training().finish_reading();  // nor does a thread store pictures any more
  }
  setup_.caching().finish();
  run_log_.end("finished", "", 0);
  kept_steps_.discard();
  on_root(communicator_, [&] {
    if (const std::string text = described(sent); !text.empty()) {
      messages_.say("messages sent: " + text + "\n");
    }
    if (const std::string energy = record_.energy_line(); !energy.empty()) {
      messages_.say(printable(energy) + "\n");
    }
  });
}

void SessionRun::warn_of_risen_loss() {
  on_root(communicator_, [&] {
    if (const auto risen = figures_->loss().risen()) {
      warn(fmt::format(
          "training has diverged: the loss rose from {:.2f} to {:.2f}; try a lower learning_rate "
          "or a longer burn_in",
          risen->from,
          risen->to));
    }
  });
}

void SessionRun::warn_of_unequal_copies() {
  const std::optional<std::string> text = communicator_.agree(copies_.found());
  on_root(communicator_, [&] {
    if (text && !copies_.found()) {
      warn(*text);
    }
  });
}

std::string SessionRun::plan_text() {
  return plan_summary(phases_.network(), phases_.plan(), partition_, planned_options()) + "\n" +
         setup_.described_sizes(mean_step_s());
}

partitioner::ReportOptions SessionRun::planned_options() const {
  return setup_.planned_options(phases_.network(), phases_.plan());
}

std::optional<double> SessionRun::mean_step_s() const {
  const auto& sizes = setup_.sizes();
  const auto cluster =
      sizes ? profiled_cluster(request_.partition, partition_.ranks) : std::nullopt;
  if (!cluster) {
    return std::nullopt;
  }
  return mean_step_seconds(
      phases_.network(), *cluster, request_.partition, setup_.workload(), partition_, *sizes);
}

void SessionRun::say_plan() {
  on_root(communicator_, [&] { messages_.say(plan_text()); });
}

void SessionRun::change_to(const partitioner::Partition& partition,
                           const std::optional<double>& predicted_s) {
  phases_.take_part([this] { record_.settle(); });  // before those who take part change
  kept_steps_.change_partition();
  phases_.change_to(partition, with_trunk(setup_.phase_in(phases_.steps_done() + 1, partition)));
  partition_ = partition;
  figures_->change_partition();
  if (TrainingPhase* phase = phases_.now()) {
    PredictedSteps predicted;
    std::string planned;
    on_root(phase->communicator(), [&] {
      predicted = predicted_steps(
          request_.partition, phase->network(), setup_.workload(), partition_, phase->plan());
      predicted.step_s = predicted_s ? predicted_s : predicted.step_s;
      planned = plan_json(phase->network(), phase->plan(), planned_options());
    });
    run_log_.go_on(planned, std::move(predicted), phase->trainer(), length_.last_step);
  }
}

RunSize SessionRun::run_size() const {
  return {.steps = length_.last_step,
          .first_step = begun_.step,
          .epoch_steps = length_.epoch_steps,
          .testing_steps =
              static_cast<double>(testing_.count) / static_cast<double>(setup_.training().batch)};
}

RunRecord::Options SessionRun::record_options() const {
  return {.folder = request_.run,
          .resume = request_.resume,
          .replace = request_.replace,
          .goes_on = environment_.started_again,
          .monitor = monitor_options(),
          .sync = [this] { run_log_.sync(); },
          .saved =
              [this](Index step) {
                run_log_.saved(step);
                if (observer_.checkpoint) {
                  observer_.checkpoint(record_.checkpoint_file().string(), step);
                }
              },
          .some_rest = changes_phase(),
          .rescue = [this](const std::filesystem::path& rescued) { run_log_.copy_to(rescued); },
          .resume_advice = observer_.resume_advice_in};
}

std::optional<MonitorOptions> SessionRun::monitor_options() const {
  if (!request_.monitor) {
    return std::nullopt;
  }
  MonitorOptions options{.meters = request_.meters, .root = environment_.machine_root};
  options.warn = [this](const std::string& text) { warn(text); };
  options.throttling = [this](const std::string& host, const std::string& text) {
    run_log_.tell("throttling", host + " is " + text, {.device = host});
  };
  return options;
}

// Rank 0's: as a message, and in the log of the run.
void SessionRun::warn(const std::string& text) const {
  messages_.warn(text);
  run_log_.warn(text);
}

void SessionRun::begin_run_log() {
  RunLog::Start start;
  TrainingPhase& phase = *phases_.now();
  const partitioner::Plan& plan = phase.plan();
  on_root(communicator_, [&] {
    start.folder = request_.run;
    start.owes_epoch = owed_.epoch;
    start.predicted =
        predicted_steps(request_.partition, phase.network(), setup_.workload(), partition_, plan);
    if (const auto mean_s = mean_step_s()) {  // the shares are of the configured size alone
      start.predicted.step_s = mean_s;
      start.predicted.per_rank.clear();
    }
    start.summary = {.version = environment_.program_version,
                     .model = request_.model,
                     .data = request_.data,
                     .command = environment_.command,
                     .last_step = length_.last_step,
                     .epoch_steps = length_.epoch_steps,
                     .batch = setup_.training().batch,
                     .seed = setup_.seed(),
                     .augment_variants = setup_.augment_variants(),
                     .replicas = plan.replicas.count,
                     .sync = to_text(plan.replicas.sync),
                     .gradient_precision = to_text(partition_.gradient_reduction.compression),
                     .inexact = setup_.inexact(partition_),
                     .training_pictures = training_pictures_.count,
                     .testing_pictures = testing_.count,
                     .class_names = training_pictures_.class_names,
                     .predicted_step_s = start.predicted.step_s.value_or(kUnknown)};
    if (const auto& limit_bytes = request_.partition.memory_limit_bytes) {
      start.summary.memory_limit_bytes = static_cast<double>(*limit_bytes);
    }
    if (const std::string place = setup_.caching().place(); !place.empty()) {
      start.summary.cache = PictureCacheUse{.place = place};
    }
    start.plan_json = plan_json(phase.network(), plan, planned_options());
    start.tell_before = [this] {
      faults_->tell([this](const auto& kind, const auto& text, const auto& details) {
        run_log_.tell(kind, text, details);
      });
    };
  });
  run_log_.begin(std::move(start), record_, phase.trainer(), length_.last_step);
}

void SessionRun::report_memory(const partitioner::MemoryUse& measured) {
  const std::vector<RankMemory> ranks =
      memory_of_ranks(setup_.planned_memory(partition_),
                      {measured, setup_.caching().resident_for_others()},
                      communicator_);
  record_.write(run_file::kMemory, text_of(ranks));
  on_root(communicator_, [&] { messages_.say(memory_table(ranks)); });
}

}  // namespace tessera::engine
