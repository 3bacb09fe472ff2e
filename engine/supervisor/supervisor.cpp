#include "engine/supervisor/supervisor.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "engine/files/atomic_file.h"
#include "engine/supervisor/connection.h"
#include "engine/supervisor/device_presence.h"
#include "engine/supervisor/fault_judge.h"
#include "engine/supervisor/full_disk.h"
#include "engine/supervisor/hang_watch.h"
#include "engine/supervisor/run_copy.h"
#include "engine/supervisor/run_devices.h"
#include "engine/supervisor/run_notes.h"
#include "engine/supervisor/state_folder.h"
#include "engine/supervisor/supervision.h"
#include "engine/supervisor/world.h"
#include "engine/supervisor/world_start.h"
#include "engine/system/clock.h"
#include "engine/system/exit_code.h"
#include "engine/system/stop_request.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/shell_word.h"

namespace tessera::engine {

namespace {

// From a rank's end until all others have ended by themselves.
constexpr double kLongestEnd_s = 70;

std::string name_of_signal(int number) {
  const char* const name = ::sigabbrev_np(number);
  return name == nullptr ? fmt::format("signal {}", number) : std::string("SIG") + name;
}

SupervisorRecord record_of(const SupervisorRequest& request) {
  SupervisorRecord record = request.record;
  if (record.run_number.empty()) {
    record.run_number = new_run_number();
  }
  // Newer than whatever has been heard of here, so that an older supervisor gives way.
  const auto known = StateFolder::of_run(record.run_number) / kRecordName;
  record.generation = std::max(record.generation, supervisor_of(known).generation) + 1;
  record.supervisor = new_run_number();
  record.stopped = false;
  if (!request.goes_on) {  // all are reached before the first step
    record.last_step.resize(record.hosts.size());
    std::iota(record.last_step.begin(), record.last_step.end(), 0);
  }
  // Of this device; one that takes over has been told by an agent, while its cable was in.
  if (!request.takes_over || record.interface.empty()) {
    record.interface.clear();
    for (const Host& host : record.hosts) {
      if (record.interface.empty() && record.hosts.size() > 1) {
        record.interface = interface_towards(host.name);
      }
    }
  }
  return record;
}

class SupervisedRun {
 public:
  explicit SupervisedRun(const SupervisorRequest& request)
      : request_(request),
        silence_s_(request.silence_s > 0 ? request.silence_s : kUsualSilence_s),
        record_(record_of(request)),
        devices_(request_, record_, silence_s_),
        presence_(request_, record_, devices_),
        world_start_(request_, record_, devices_),
        faults_(request.goes_on),
        hang_watch_(silence_s_),
        copy_(record_.run_folder),
        notes_(StateFolder::of_run(record_.run_number)) {
    record_.leader = name_of(0);
  }

  int run();

 private:
  int go_on_to_the_end();
  void take_messages();
  void take(int device, const to_supervisor::Message& message);
  void take_of_rank(int device, const PmiLine& message);
  void take_of_rank(int device, const to_supervisor::Status& message);
  void take_of_rank(int device, const to_supervisor::Late& message);
  void take_of_rank(int device, const to_supervisor::Exit& exit);
  void take_step(Index step, Index last);
  void note_devices_of_step();
  void look_at_leadership();
  void look_at_signals();
  void look_at_agents();
  void look_at_world();
  void look_for_hanging_ranks();
  void look_at_disk();
  void take_devices_back();
  void start_world();
  void wait_for_devices();
  void look_at_presence();
  [[nodiscard]] bool is_left_in_order(int device);
  void fault(FaultKind kind, int device, const std::string& what);
  void end_stopped();
  [[nodiscard]] int exit_code_of_fault(FaultKind kind) const;
  void stop_unsaved();
  void note_fault(const std::string& what, int device) const;
  void write_record() const;
  void note_stop();
  void look_at_copy();
  void finish_copy();
  void keep_aside();
  // Whether the run's record is in its folder here; a disk that has gone is no error.
  [[nodiscard]] bool has_folder() const {
    std::error_code error;
    return std::filesystem::exists(std::filesystem::path(record_.run_folder) / kRecordName, error);
  }
  [[nodiscard]] bool may_start() { return devices_.link(0).is_ready() && now_s() >= start_from_s_; }
  // Whether the run has begun before the ranks that there are.
  [[nodiscard]] bool goes_on() const { return worlds_ > 1 || request_.goes_on; }
  [[nodiscard]] std::string going_on() const;
  void say(const std::string& text) const { request_.say(printable(text)); }
  [[nodiscard]] const std::string& name_of(int device) const { return devices_.name_of(device); }

  const SupervisorRequest& request_;
  double silence_s_;
  SupervisorRecord record_;
  RunDevices devices_;
  DevicePresence presence_;
  WorldStart world_start_;
  FaultJudge faults_;
  HangWatch hang_watch_;
  RunCopy copy_;
  RunNotes notes_;
  std::optional<World> world_;
  Index worlds_ = 0;
  int signal_ = 0;
  double start_from_s_ = 0;                // ranks do not start before
  std::optional<double> pausing_since_s_;  // ranks were asked to pause
  bool saved_ = true;                      // what was learnt, where ranks could
  bool recorded_ = false;
  bool met_full_disk_ = false;        // ranks of this world have
  std::optional<double> full_since_;  // ranks wait for room on the disk
  bool went_on_with_part_ = false;    // another part of the last step's devices may have, too
  bool waits_ = false;                // for devices, of which too few are there
  std::string waits_for_;             // as it was said
  std::optional<double> enough_since_s_;
  std::set<int> ending_;  // devices that have been told to shut down
  std::optional<int> exit_code_;
};

int SupervisedRun::run() {
  const OrderlyStop orderly;  // ranks say what they do
  try {
    devices_.reach_all();
    return go_on_to_the_end();
  } catch (const Stopped& stopped) {
    if (!request_.goes_on) {
      devices_.end(true);
      throw;
    }
    signal_ = stopped.signal();
    stop_unsaved();
    devices_.end(false);
    return *exit_code_;
  } catch (...) {
    if (worlds_ == 0 && !request_.goes_on) {
      devices_.end(true);  // nothing was kept
    }
    throw;
  }
}

int SupervisedRun::go_on_to_the_end() {
  look_at_leadership();
  if (!exit_code_ && request_.takes_over && !has_folder()) {
    return kOthersMissing;  // another device has it: this one was to learn whether the run has
                            // finished
  }
  if (!exit_code_ && request_.takes_over && !presence_.is_enough()) {
    say(presence_.what_is_missing());
    return kOthersMissing;
  }
  if (!exit_code_) {
    if (request_.goes_on) {
      const SupervisorRecord& before = request_.record;
      notes_.add_lost_supervisor(record_.run_folder,
                                 before.leader.empty() ? before.hosts.front().name : before.leader);
    }
    start_world();
  }
  while (!exit_code_) {
    devices_.wait();
    take_messages();
    look_at_signals();
    look_at_agents();
    if (!exit_code_) {
      look_at_world();
    }
    if (!exit_code_) {
      devices_.look_for_missing(waits_);
      take_devices_back();
      look_at_copy();
      world_start_.plan_ahead(world_ ? &*world_ : nullptr);
    }
  }
  note_stop();
  finish_copy();
  // What ranks kept is for a run that may go on without a checkpoint.
  devices_.end(devices_.has_finished() || (saved_ && *exit_code_ != kOthersMissing));
  if (devices_.are_led_by_another()) {
    keep_aside();
  }
  return *exit_code_;
}

// Two parts of the network have trained, and the other one goes on. What this one has learnt is not
// overwritten by the copy of the other's folder. A folder that both see is the other's by now.
void SupervisedRun::keep_aside() {
  const std::filesystem::path folder = record_.run_folder;
  if (!went_on_with_part_ || supervisor_of(folder / kRecordName).number != record_.supervisor) {
    return;
  }
  std::filesystem::path aside;
  std::error_code error;
  for (int number = 1; aside.empty() || std::filesystem::exists(aside, error); ++number) {
    aside = fmt::format("{}-aside-{}", folder.string(), number);
  }
  std::filesystem::rename(folder, aside, error);
  say(error ? fmt::format("{}: cannot be moved: {}", folder.string(), error.message())
            : fmt::format("what this part of the devices has learnt is kept in {}",
                          shell_word(aside.string())));
}

// For devices that are not reached now, and would take the run over as one whose supervisor is
// gone.
void SupervisedRun::note_stop() {
  record_.stopped = devices_.are_stopped() || (signal_ != 0 && !devices_.are_led_by_another());
  if (record_.stopped && has_folder()) {
    write_record();
  }
}

void SupervisedRun::look_at_leadership() {
  if (devices_.are_led_by_another()) {
    exit_code_ = kOthersMissing;
  } else if (devices_.has_finished()) {
    exit_code_ = 0;
  }
}

std::string SupervisedRun::going_on() const {
  return fmt::format(
      "going on with {} of {} devices", devices_.roster().taking_part().size(), devices_.size());
}

// A folder that is no copy any more is older, by its record, than what all devices are told.
void SupervisedRun::look_at_copy() {
  if (!recorded_) {
    return;
  }
  copy_.keep(devices_.agents(), devices_.roster());
  if (copy_.begins()) {
    ++record_.copies;
    write_record();
  }
  if (copy_.is_whole_now()) {
    devices_.tell_all(to_agent::Record{record_});
  }
}

void SupervisedRun::finish_copy() {
  constexpr double kLongest_s = 20;
  const double end_s = now_s() + kLongest_s;
  while (!copy_.finish(devices_.agents(), devices_.roster()) && now_s() < end_s) {
    devices_.wait();
    devices_.pass_over_messages();
  }
}

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

void SupervisedRun::look_at_signals() {
  if (signal_ == 0 && stop_signal() != 0) {
    signal_ = stop_signal();
    devices_.tell_all(to_agent::Signal{signal_});
  }
}

void SupervisedRun::look_at_agents() {
  for (int device = 0; device < devices_.size() && !exit_code_; ++device) {
    const std::optional<std::string> what = devices_.loss_of(device);
    if (!what || (world_ && world_->all_ended())) {
      continue;
    }
    devices_.link(device).drop();
    if (is_left_in_order(device)) {
      devices_.roster().lose(device, now_s());
    } else if (devices_.roster().takes_part(device)) {
      fault(FaultKind::Lost, device, *what);
    } else {
      devices_.roster().missed(device, now_s());
    }
  }
}

// A device that was told to shut down has ended its ranks before, once all of them had saved.
bool SupervisedRun::is_left_in_order(int device) {
  return world_ && devices_.roster().takes_part(device) && world_->ended() > 0 &&
         world_->has_ended_on(device) && (signal_ != 0 || ending_.count(device) > 0);
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

void SupervisedRun::look_at_world() {
  if (!world_) {
    if (signal_ != 0) {
      stop_unsaved();
    } else if (waits_) {
      look_at_presence();
    } else if (may_start()) {
      start_world();
    }
    return;
  }
  if (world_->all_ended()) {
    const auto& failure = world_->first_failure();
    if (failure && is_stopped(*failure)) {
      end_stopped();
    } else if (pausing_since_s_ && failure && failure->code == kPaused) {
      start_world();
    } else if (met_full_disk_ && (goes_on() || world_->steps_done() > 0)) {
      look_at_disk();
    } else {
      exit_code_ = failure ? failure->code : 0;
    }
    return;
  }
  if (world_->ended() > 0) {
    if (now_s() - world_->moved_s() > kLongestEnd_s && world_->first_failure()) {
      exit_code_ = world_->first_failure()->code;
    }
    return;
  }
  look_for_hanging_ranks();
}

// All ranks have saved and ended, since they were told to: the run ends, or goes on where it was a
// device other than this one that shuts down.
void SupervisedRun::end_stopped() {
  look_at_signals();
  if (signal_ != 0 || ending_.empty()) {
    exit_code_ = world_->first_failure()->code;
    return;
  }
  for (const int device : ending_) {
    devices_.link(device).drop();
    devices_.roster().lose(device, now_s());
  }
  if (!presence_.is_enough()) {  // all shut down, this device perhaps a moment later
    exit_code_ = world_->first_failure()->code;
    return;
  }
  for (const int device : ending_) {
    const std::string what = name_of(device) + " shuts down";
    note_fault(what, device);
    say(what + ": " + going_on());
  }
  ending_.clear();
  start_world();
}

void SupervisedRun::look_for_hanging_ranks() {
  const auto hang = hang_watch_.look({.moved_s = world_->moved_s(),
                                      .step_s = world_->step_s(),
                                      .pausing_since_s = pausing_since_s_},
                                     now_s());
  if (!hang) {
    return;
  }
  if (const auto rank = hang->rank ? hang->rank : world_->first_silent()) {
    const int device = world_->device_of(*rank);
    fault(FaultKind::Hangs,
          device,
          fmt::format("{}: rank {} on {} hangs", hang->what, *rank, name_of(device)));
  } else {
    fault(FaultKind::Ended, 0, hang->what);
  }
}

// All ranks have ended since the disk of the run folder was full. What they keep in memory stays;
// they go on from it as soon as there is room.
void SupervisedRun::look_at_disk() {
  constexpr double kLongestFull_s = 24 * 3600;
  if (!full_since_) {
    full_since_ = now_s();
    faults_.stand_still(world_->moved_s());
    const std::string what = fmt::format("the disk with {} is full", record_.run_folder);
    note_fault(what, 0);
    say(what + ": training waits until there is room");
  }
  if (signal_ != 0) {
    stop_unsaved();
  } else if (!lacks_room(record_.run_folder)) {
    say("there is room on the disk again: going on");
    start_world();
  } else if (now_s() - *full_since_ > kLongestFull_s) {
    exit_code_ = world_->first_failure()->code;
  }
}

void SupervisedRun::take_devices_back() {
  if (!world_ || pausing_since_s_ || world_->ended() > 0 || world_->steps_done() < 2 ||
      signal_ != 0) {
    return;
  }
  const std::vector<int> back = devices_.roster().worth_taking_back(
      {world_->step_s(), world_->last_step() - world_->step(), faults_.change_s()}, now_s());
  if (back.empty()) {
    return;
  }
  std::vector<std::string> names;
  for (const int device : back) {
    names.push_back(name_of(device));
    devices_.roster().take_back(device);
  }
  const std::string what = fmt::format("{} {} back: taking part again from the next step",
                                       fmt::join(names, ", "),
                                       names.size() == 1 ? "is" : "are");
  say(what);
  notes_.add("return", what, name_of(back.front()));
  pausing_since_s_ = now_s();
  devices_.tell_all(to_agent::Pause{world_->number()});
}

// Less than what may go on: what ranks have kept stays, until others are back or have gone on
// themselves.
void SupervisedRun::wait_for_devices() {
  devices_.tell_all(to_agent::Wait{});
  world_.reset();
  waits_ = true;
  waits_for_.clear();
  look_at_presence();
}

// Those that come back do so within seconds of each other: a start with all of them is worth a
// short wait.
void SupervisedRun::look_at_presence() {
  constexpr double kForTheRest_s = 3;
  if (!presence_.is_enough()) {
    enough_since_s_.reset();
    if (std::string missing = presence_.what_is_missing(); missing != waits_for_) {
      waits_for_ = std::move(missing);
      say(waits_for_);
    }
    return;
  }
  enough_since_s_ = enough_since_s_.value_or(now_s());
  if (may_start() && (presence_.is_complete() || now_s() - *enough_since_s_ > kForTheRest_s)) {
    start_world();
  }
}

void SupervisedRun::start_world() {
  look_at_signals();
  if (signal_ != 0) {
    stop_unsaved();
    return;
  }
  if (!presence_.is_enough()) {
    wait_for_devices();
    return;
  }
  if (std::exchange(waits_, false)) {
    devices_.take_back_reached();
    say(going_on());
  }
  pausing_since_s_.reset();
  met_full_disk_ = false;
  full_since_.reset();
  hang_watch_.begin();
  if (!may_start()) {  // look_at_world() starts it then
    devices_.tell_all(to_agent::Kill{});
    world_.reset();
    return;
  }
  ++worlds_;
  devices_.ranks_start();
  world_.emplace(worlds_, world_start_.devices_of_ranks(), now_s());
  world_start_.start(*world_, goes_on());
}

void SupervisedRun::write_record() const {
  try {
    write_atomically(std::filesystem::path(record_.run_folder) / kRecordName, text_of(record_));
  } catch (const InputError& error) {
    say(error.what());
  }
}

}  // namespace

int run_supervised(const SupervisorRequest& request) {
  SupervisedRun run(request);
  return run.run();
}

}  // namespace tessera::engine
