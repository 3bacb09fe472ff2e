// The steps of a session's run: one part after the other, by one partition each.

#include <algorithm>
#include <fmt/format.h>
#include <memory>

#include "engine/comm/agreement.h"
#include "engine/run_files/names.h"
#include "engine/session/session_run.h"
#include "engine/system/stop_request.h"
#include "engine/train/metrics/make_metric.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/quantities.h"
#include "partitioner/text/plan_words.h"

namespace tessera::engine {

// That a part of the steps begins, and that it is over.
class SessionRun::StepsTold {
 public:
  explicit StepsTold(SessionRun& run)
      : observer_(run.observer_), root_(run.communicator_.rank() == 0) {
    if (root_ && observer_.steps_begin) {
      observer_.steps_begin({run.phases_.now()->trainer().steps_done(),
                             run.length_.last_step,
                             run.setup_.training().batch});
    }
  }
  ~StepsTold() {
    if (root_ && observer_.steps_end) {
      observer_.steps_end();
    }
  }
  StepsTold(const StepsTold&) = delete;
  StepsTold& operator=(const StepsTold&) = delete;

 private:
  const TrainingSessionObserver& observer_;
  bool root_;
};

std::optional<Index> SessionRun::end_of_phase() const {
  return frozen_until_ > 0 && frozen_until_ < length_.last_step ? std::optional(frozen_until_)
                                                                : std::nullopt;
}

void SessionRun::take_steps_with_frozen_layers() {
  const OrderlyStop orderly(stop_notice());
  while (const auto end = end_of_phase()) {
    bool enough = false;
    take_steps([&](TrainingRun& run) {
      run.run_until(*end, stop_notice());
      enough = run.is_enough();
    });
    if (communicator_.share(enough)) {
      return;
    }
    learn_more_layers();
  }
}

void SessionRun::learn_more_layers() {
  const bool has_own_states =
      partition_.replicas.independent() || partition_.gradient_reduction.compression.by_runs();
  if (has_own_states && busy_ranks(partition_).size() > 1) {
    messages_.warn(
        fmt::format("after step {} more layers learn: what each rank had of its own, such "
                    "as what compressed messages had left out, is dropped, and all ranks "
                    "go on from the weights that they had in common",
                    frozen_until_),
        communicator_);
  }
  const Index step = frozen_until_ + 1;
  const std::string layers =
      partitioner::named_layers(frozen_.last_in(step) + 1, frozen_.last_in(step - 1));
  frozen_until_ = frozen_.end_of(step);
  change_to(partition_, std::nullopt);
  on_root(communicator_, [&] {
    const std::string text = fmt::format("learning from step {} on, too: {}", step, layers);
    run_log_.tell("unfreeze", text);
    messages_.say(text + "\n" + plan_text());
  });
}

void SessionRun::choose_by_trials() {
  const OrderlyStop orderly(stop_notice());
  const MeterReading mine = record_.meter_reading();
  const bool metered = on_any_rank(communicator_, mine.board.is_there || mine.cluster.is_there);
  RunSize size = run_size();
  size.first_step = phases_.steps_done();
  TrialRuns runs{
      .communicator = communicator_,
      .size = size,
      .metered = metered,
      .change_to = [this](const auto& partition,
                          const auto& predicted_s) { change_to(partition, predicted_s); },
      .take_steps = [this](Index steps) { return try_steps(steps); },
      .write = [this](const char* name, const std::string& text) { record_.write(name, text); },
      .tell = [this](const std::string& kind,
                     const std::string& text) { run_log_.tell(kind, text); }};
  chooser_->choose(runs);
  record_.write(run_file::kPartition, to_text(partition_));
}

bool SessionRun::rebalances_to_the_end() {
  const OrderlyStop orderly(stop_notice());
  // What a search at the start has said is not said again.
  Rebalancer rebalancer(setup_.network(),
                        request_.partition,
                        setup_.workload(),
                        communicator_,
                        request_.partition.automatic ? SessionObserver() : messages_);
  return take_rebalanced_steps(
      {.first_step = phases_.steps_done(),
       .last_step = length_.last_step,
       .window_s = request_.rebalance_window_s.value(),
       .take_steps = [this](Index steps) { return take_window(steps); },
       .go_on_by = [this](const auto& partition,
                          const auto& reason) { go_on_by(partition, reason); }},
      partition_,
      rebalancer);
}

StepWindow SessionRun::take_window(Index steps) {
  StepWindow window;
  Index counted = 0;
  take_steps([&](TrainingRun& run) {
    const Index first = phases_.now()->trainer().steps_done();
    run.add({.step = [&](Index step, const StepResult& result) {
      if (step > first + 1 || steps == 1) {
        window.computing_s += result.times.computing_s();
        window.step_s += result.times.step_s;
        ++counted;
      }
    }});
    run.run_until(std::min(first + steps, end_of_phase().value_or(length_.last_step)),
                  stop_notice());
    window.enough = run.is_enough();
    if (window.enough) {
      run.run(stop_notice());  // what comes at the end
    }
    window.steps_done = phases_.now()->trainer().steps_done();
  });
  const StepWindow root = communicator_.share(window);
  if (!root.enough && root.steps_done == end_of_phase()) {
    learn_more_layers();
    return {.steps_done = root.steps_done};  // nothing is known of steps of all that learns now
  }
  const auto mean = static_cast<double>(std::max<Index>(communicator_.share(counted), 1));
  return {.steps_done = root.steps_done,
          .enough = root.enough,
          .step_s = root.step_s / mean,
          .computing_s = window.computing_s / mean,
          .network = &phases_.network()};
}

void SessionRun::go_on_by(const partitioner::Partition& partition, const std::string& reason) {
  change_to(partition, std::nullopt);
  record_.write(run_file::kPartition, to_text(partition_));
  on_root(communicator_, [&] {
    const std::string text = "another partition: " + reason;
    run_log_.tell("rebalance", text);
    messages_.say(printable(text) + "\n" + plan_text());
  });
}

TrialMeasurement SessionRun::try_steps(Index steps) {
  TrialMeasurement mine;
  MeterReading before = record_.meter_reading();
  take_steps([&](TrainingRun& run) {
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
    run.run_until(first + steps, stop_notice());
    mine.computing = sum.step_s > 0 ? 1 - sum.waiting_s / sum.step_s : 0;
  });
  const MeterReading after = record_.meter_reading();
  mine.board = measured_power(before.board, after.board);
  mine.cluster = measured_power(before.cluster, after.cluster);
  return mine;
}

void SessionRun::take_steps(const std::function<void(TrainingRun& run)>& work) {
  const Owed owed = std::exchange(owed_, {});  // also where this rank rests
  const auto take = [&] {
    TrainingPhase& phase = *phases_.now();
    TrainingRun run(phase.trainer(), phase.training(), length_);
    const std::unique_ptr<Metric> metric = make_metric(setup_.network());
    run.goes_on_from(begun_.step);
    run.save_epochs_if([this] { return record_.may_write_checkpoint(); });
    if (phase.testing() != nullptr) {
      run.test_on(*phase.testing(), *metric, phase.testing_trunk());
    }
    add_observers(run);
    tell_what_is_owed(run, owed);
    const StepsTold told(*this);
    try {
      work(run);
      kept_steps_.settle();
    } catch (const AgreedError&) {
      kept_steps_.settle();
      throw;
    } catch (const Stopped& stopped) {
      throw Stopped(stopped.signal(),
                    what_was_saved(stopped.signal(), phase.trainer().steps_done()));
    }
  };
  try {
    phases_.take_part(take);
  } catch (const Stopped&) {
    if (changes_phase()) {
      record_.finish_monitor();
    }
    throw;
  }
}

void SessionRun::tell_what_is_owed(TrainingRun& run, const Owed& owed) const {
  run.last_saved(record_.checkpoint_step());
  if (owed.checkpoint) {
    run.owe_checkpoint();
  }
  if (owed.epoch) {
    run.owe_test();
  } else if (is_out_of_patience()) {
    run.has_enough();
  }
}

// In the order in which they hear of the same.
void SessionRun::add_observers(TrainingRun& run) {
  TrainingPhase& now = *phases_.now();
  run.add(activity_begins(observer_.activity, now.plan(), setup_.training()));
  if (communicator_.rank() == 0) {
    run.add(figures_->observer(
        length_, setup_.caching(), [this](const std::string& text) { warn(text); }));
    run.add(observer_.steps);
  }
  run.add(record_.observer(now.trainer(), begun_));
  run.add(run_log_.observer());
  if (communicator_.rank() == 0) {
    run.add({.evaluation = [this](Index step, double /*epoch*/, const EvaluationResult& result) {
      if (const auto* objects = dynamic_cast<const DetectionMetrics*>(result.metric)) {
        TrainingPhase& phase = *phases_.now();
        run_log_.draw_sheets(step,
                             setup_.training().subdivisions,
                             phase.training().source(),
                             phase.testing()->source(),
                             *objects);
      }
    }});
  }
  run.add({.enough = [this] { return is_out_of_patience(); }});
  compare_copies(run);
  run.add(kept_steps_.observer(setup_.network(), now, begun_, length_));
  if (observer_.step_done) {
    run.add({.step = [this](Index step, const StepResult& result) {
      if (const auto cost = faults_ ? faults_->recovered(result.times.step_s) : std::nullopt) {
        run_log_.tell("recovery", described(*cost), {.cost = cost});
      }
      observer_.step_done(step, length_.last_step);
    }});
  }
  run.add(activity_ends(observer_.activity));
}

void SessionRun::compare_copies(TrainingRun& run) {
  run.add({.step = [this](Index step, const StepResult& /*result*/) {
    const auto unequal =
        copies_.look(phases_.now()->trainer().execution(), step, length_.last_step);
    if (unequal && communicator_.rank() == 0) {
      warn(*unequal);
    }
  }});
}

std::string SessionRun::what_was_saved(int signal, Index step) const {
  const std::string file = record_.checkpoint_file().string();
  return fmt::format("{} after step {}: saved in {}; {}",
                     signal_name(signal),
                     step,
                     printable(file),
                     step == length_.last_step  ? "that was the last one"
                     : !observer_.resume_advice ? "resume from it to continue"
                                                : "to continue: " + observer_.resume_advice(file));
}

void SessionRun::take_steps_while_samples_move(MappedData& mapped) {
  const Index most = std::min(mapped.early_steps(), end_of_phase().value_or(length_.last_step - 1));
  Index step = 0;
  take_steps([&](TrainingRun& run) {
    while (step < most && !mapped.look(most)) {
      run.run_until(++step, stop_notice());
    }
  });
  phases_.now()->training().finish_reading();
  mapped.finish_move(step, messages_);
}

}  // namespace tessera::engine
