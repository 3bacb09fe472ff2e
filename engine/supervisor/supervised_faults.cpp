// What devices and ranks say, and what is a fault of theirs.

#include <cstring>
#include <fmt/format.h>

#include "engine/supervisor/full_disk.h"
#include "engine/supervisor/supervised_run.h"
#include "engine/supervisor/supervision.h"
#include "engine/system/exit_code.h"
#include "engine/system/stop_request.h"
#include "partitioner/base/shell_word.h"

namespace tessera::engine {

namespace {

std::string name_of_signal(int number) {
  const char* const name = ::sigabbrev_np(number);
  return name == nullptr ? fmt::format("signal {}", number) : std::string("SIG") + name;
}

}  // namespace

void SupervisedRun::take_messages() {
  for (int device = 0; device < devices_.size(); ++device) {
    for (const to_supervisor::Message& message : devices_.link(device).receive()) {
      take(device, message);
    }
  }
}

void SupervisedRun::take(int device, const to_supervisor::Message& message) {
  if (devices_.take(device, message)) {
    look_at_leadership();
    return;
  }
  if (const auto* const ending = std::get_if<to_supervisor::Ending>(&message)) {
    if (devices_.link(device).is_here()) {
      request_stop(ending->signal);
    } else {
      ending_.insert(device);
    }
  } else if (const auto* const look = std::get_if<to_supervisor::Look>(&message)) {
    copy_.take_look(device, *look);
  } else {
    std::visit(
        [&](const auto& of_rank) {
          if constexpr (requires { take_of_rank(device, of_rank); }) {
            if (world_ && of_rank.world == world_->number() && world_->has_rank(of_rank.rank) &&
                world_->device_of(of_rank.rank) == device) {
              take_of_rank(device, of_rank);
            }
          }
        },
        message);
  }
}

void SupervisedRun::take_of_rank(int /*device*/, const PmiLine& message) {
  world_->hear(message.rank);
  for (const auto& answer : world_->pmi().take(message.rank, message.line)) {
    devices_.link(world_->device_of(answer.rank))
        .send(PmiLine{world_->number(), answer.rank, answer.line});
  }
}

void SupervisedRun::take_of_rank(int device, const to_supervisor::Late& message) {
  fault(FaultKind::Ended,
        device,
        fmt::format("rank {} on {} has not answered for {:.1f} s",
                    message.rank,
                    name_of(device),
                    static_cast<double>(message.silent_ms) / 1000));
}

void SupervisedRun::take_of_rank(int device, const to_supervisor::Status& message) {
  world_->hear(message.rank);
  hang_watch_.take(message.rank, message.status, now_s());
  if (!recorded_ && hang_watch_.phase() == RankPhase::Steps) {  // the run has its folder
    recorded_ = true;
    write_record();
  }
  if (std::holds_alternative<of_rank::Saved>(message.status)) {
    world_->save(message.rank);
  } else if (const auto* const step = std::get_if<of_rank::Step>(&message.status)) {
    if (message.rank == 0) {
      take_step(step->step, step->last);
    }
  } else if (const auto* const silent = std::get_if<of_rank::Silent>(&message.status)) {
    if (!silent->ranks.empty() && world_->has_rank(silent->ranks.front())) {
      const int other = world_->device_of(silent->ranks.front());
      fault(FaultKind::Unheard,
            other,
            fmt::format("{} has heard nothing of {}", name_of(device), name_of(other)));
    }
  }
}

void SupervisedRun::take_step(Index step, Index last) {
  world_->finish_step(step, last, now_s());
  if (world_->steps_done() == 1) {
    note_devices_of_step();
  }
  if (const auto stood_s = faults_.finish_step(now_s())) {
    say(fmt::format("step {} is done, {:.1f} s after the last one", step, *stood_s));
  }
}

// From here on these devices have the last finished step.
void SupervisedRun::note_devices_of_step() {
  went_on_with_part_ = went_on_with_part_ || presence_.is_a_part();
  presence_.finish_step();
  record_.last_step.clear();
  for (const int device : devices_.roster().taking_part()) {
    record_.last_step.push_back(devices_.place_of(device));
  }
  write_record();
  devices_.tell_all(to_agent::Record{record_});
}

void SupervisedRun::take_of_rank(int device, const to_supervisor::Exit& exit) {
  const ProcessEnd end{exit.code, exit.signal};
  world_->finish_rank(exit.rank, end);
  const FaultKind kind = !is_crash(end)        ? FaultKind::Ended
                         : exit.limits.empty() ? FaultKind::Crashed
                                               : FaultKind::Limited;
  const std::string because =
      kind == FaultKind::Limited ? fmt::format(" (there {})", exit.limits) : std::string();
  if (pausing_since_s_ && end.signal == 0 && (end.code == kPaused || end.code == 0)) {
    return;
  }
  if (end.signal != 0) {
    fault(exit.memory ? FaultKind::Memory : kind,
          device,
          fmt::format("rank {} on {} {}{}",
                      exit.rank,
                      name_of(device),
                      exit.memory ? "was killed since memory ran out"
                                  : fmt::format("was ended by {}", name_of_signal(end.signal)),
                      exit.memory ? "" : because));
  } else if (end.code == kInputError && lacks_room(record_.run_folder)) {
    met_full_disk_ = true;
  } else if (const auto silent = world_->first_silent(); silent && end.code == kOthersMissing) {
    const int other = world_->device_of(*silent);
    fault(FaultKind::Hangs,
          other,
          fmt::format("rank {} on {} has not started", *silent, name_of(other)));
  } else if (!is_deliberate(end) && !(is_stopped(end) && world_->has_saved(exit.rank))) {
    fault(kind,
          device,
          fmt::format("rank {} on {} ended with code {}{}{}",
                      exit.rank,
                      name_of(device),
                      end.code,
                      is_stopped(end) ? " before it could save" : "",
                      because));
  }
}

// Ranks of this world are of no use any more: the next one starts at once.
void SupervisedRun::fault(FaultKind kind, int device, const std::string& what) {
  if (exit_code_) {
    return;
  }
  const FaultJudge::Verdict verdict =
      faults_.judge(kind, devices_.link(device).is_here(), world_ ? world_->moved_s() : now_s());
  note_fault(what, device);
  look_at_signals();
  if (signal_ != 0) {
    stop_unsaved();
    return;
  }
  const double pause_s = faults_.pause_s();
  start_from_s_ = now_s() + pause_s;
  const std::string when = pause_s > 0 ? fmt::format(" in {:g} s", pause_s) : "";
  switch (verdict) {
    case FaultJudge::Verdict::StartAgent:
      say(fmt::format("{}: starting there again{}", what, when));
      devices_.start_agent(device);
      world_.reset();
      return;
    case FaultJudge::Verdict::GiveUp:
      say(faults_.in_a_row() == 1
              ? what + ": given up"
              : fmt::format("{}; {} times in a row without a finished step: given up",
                            what,
                            faults_.in_a_row()));
      exit_code_ = exit_code_of_fault(kind);
      return;
    case FaultJudge::Verdict::SameDevices:
      say(fmt::format("{}: going on with the same devices{}", what, when));
      break;
    case FaultJudge::Verdict::LeaveOut:
      devices_.leave_out(device);
      say(presence_.is_enough() ? what + ": " + going_on() : what);
      break;
  }
  start_world();
}

// Of a run that is given up: nothing was kept before the first step, so nothing can go on.
int SupervisedRun::exit_code_of_fault(FaultKind kind) const {
  if (faults_.has_stepped() || (kind != FaultKind::Crashed && kind != FaultKind::Limited)) {
    return kOthersMissing;
  }
  return kind == FaultKind::Limited ? kInputError : exit_code_of(*world_->first_failure());
}

// The run is told to stop while no rank is there that could save what was learnt.
void SupervisedRun::stop_unsaved() {
  exit_code_ = kSignalled + signal_;
  if (recorded_ || request_.goes_on) {
    saved_ = false;
    notes_.add("stop", name_of_signal(signal_), name_of(0));
    say(fmt::format(
        "stopped while no rank could save: the last step is kept in memory; to continue: "
        "tessera run --continue {}",
        shell_word(record_.run_folder)));
  }
}

void SupervisedRun::note_fault(const std::string& what, int device) const {
  // Since the last finished step.
  notes_.add("fault", what, name_of(device), world_ ? now_s() - world_->moved_s() : 0);
}

}  // namespace tessera::engine
