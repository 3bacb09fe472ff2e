#include "engine/supervisor/supervised_run.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>
#include <utility>

#include "engine/files/atomic_file.h"
#include "engine/supervisor/connection.h"
#include "engine/supervisor/full_disk.h"
#include "engine/supervisor/state_folder.h"
#include "engine/supervisor/supervision.h"
#include "engine/system/exit_code.h"
#include "engine/system/stop_request.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/shell_word.h"

namespace tessera::engine {

namespace {

// From a rank's end until all others have ended by themselves.
constexpr double kLongestEnd_s = 70;

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

}  // namespace

SupervisedRun::SupervisedRun(const SupervisorRequest& request)
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

}  // namespace tessera::engine
