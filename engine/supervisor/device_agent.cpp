#include "engine/supervisor/device_agent.h"

#include <chrono>
#include <csignal>
#include <fmt/format.h>
#include <sys/stat.h>
#include <thread>

#include "engine/files/atomic_file.h"
#include "engine/files/own_file.h"
#include "engine/run_files/run_summary.h"
#include "engine/supervisor/connection.h"
#include "engine/system/exit_code.h"
#include "engine/system/host_name.h"
#include "engine/system/system_memory.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/quantities.h"

namespace tessera::engine {

namespace {

// With more ranks to a processor each waits so long for its turn that it counts as gone.
void expect_turns(Index ranks) {
  constexpr Index kMostOfProcessor = 16;
  const Index processors = std::max(1U, std::thread::hardware_concurrency());
  if (ranks > kMostOfProcessor * processors) {
    throw InputError(fmt::format("{} ranks on {}: expected at most {} for each",
                                 ranks,
                                 counted(processors, "processor"),
                                 kMostOfProcessor));
  }
}

volatile std::sig_atomic_t stop_signal_here = 0;

void note_stop(int signal) {
  stop_signal_here = signal;
}

// Of the supervisor's device, as sshd says of the connection; empty with another remote shell.
std::string address_of_client() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets it
  const char* const connection = std::getenv("SSH_CONNECTION");
  const std::string text = connection == nullptr ? "" : connection;
  return text.substr(0, text.find(' '));
}

}  // namespace

int Agent::run() {
  for (const int number : {SIGTERM, SIGINT, SIGHUP, kFollowed}) {
    std::signal(number, note_stop);
  }
  killed_for_memory_ = kills_for_memory();
  while (!ends_ && !is_abandoned()) {
    wait();
    look_at_stop_signal();
    for (const std::string& line : supervisor_.receive()) {
      heard_s_ = now_s();
      take_line(line);
    }
    note_that_supervisor_is_heard();
    look_at_ranks();
    if (next_world_ && (ranks_.empty() || now_s() > next_world_s_ + kLongestKill_s)) {
      start(*std::exchange(next_world_, std::nullopt));
    }
    if (now_s() - beat_s_ >= kBeat_s && !supervisor_.is_over()) {
      beat_s_ = now_s();
      send(to_supervisor::Beat{});
    }
  }
  end_ranks();
  return 0;
}

// All processes are told to end, as when a machine shuts down: ranks save first. The supervisor
// learns of it before it learns how they ended.
void Agent::look_at_stop_signal() {
  if (stop_signal_here == kFollowed) {
    ends_ = true;
  } else if (stop_signal_here != 0 && !stops_since_s_) {
    stops_since_s_ = now_s();
    const int signal = stop_signal_here;
    send(to_supervisor::Ending{signal});
    stop_next_world(signal);
    signal_ranks(signal);
  } else if (stops_since_s_) {
    ends_ = ranks_.empty() || now_s() - *stops_since_s_ > kLongestFarewell_s;
  }
}

// Ranks that would have been started: they have nothing to save.
void Agent::stop_next_world(int signal) {
  if (const auto world = std::exchange(next_world_, std::nullopt)) {
    for (const int rank : world->ranks) {
      send(to_supervisor::Exit{.world = world->world, .rank = rank, .code = kSignalled + signal});
    }
  }
}

void Agent::take_record(const SupervisorRecord& record) {
  record_ = record;
  if (place_ != 0) {
    record_->interface = interface_;
  }
}

void Agent::wait() {
  constexpr double kLongest_s = 0.1;
  PollSet waits;
  waits.add(supervisor_);
  for (const RankProcess& rank : ranks_) {
    waits.add(rank.process.descriptor());
    waits.add(rank.pmi);
    waits.add(rank.status);
  }
  waits.wait(kLongest_s);
  if (supervisor_.wants_to_write()) {
    supervisor_.flush();
  }
}

// Ranks end as soon as the supervisor is away for long: it goes on without this device, or is gone
// itself. What they kept stays until it can hardly come back.
bool Agent::is_abandoned() {
  const double silent_s = now_s() - heard_s_;
  if (!stops_since_s_ && (supervisor_.is_over() || silent_s > kAgentPatience * limit_s_)) {
    note_that_supervisor_is_gone();
    next_world_.reset();
    kill_ranks();
    take_over(silent_s);
  }
  const bool gone =
      silent_s > kStateKept_s || (supervisor_.is_over() && (!keeps_ || ranks_finished_));
  if (gone && state_) {
    state_->remove();
  }
  return gone;
}

// From here on another agent of this run ends.
void Agent::take_state() {
  state_.emplace(run_, FolderHolder{supervisor_id_.number, host_});
  // An agent before this one has begun, if this file is there.
  const std::filesystem::path begun = state_->path() / kBegunName;
  keeps_ = !Descriptor(::open(begun.c_str(),
                              O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                              S_IRUSR | S_IWUSR))
                .is_open();
  struct stat status = {};
  begun_ = ::lstat(begun.c_str(), &status) == 0 ? status.st_mtim.tv_sec : 0;
  remove_segments();  // of ranks that ended with that agent
}

// By what the agent that was here before has heard, in seconds of this machine's clock.
Claim Agent::claim_of_supervisor() {
  auto heard = read_heard(in_state(kHeardName));
  const double now = now_s();
  if (heard && !is_there(*heard, now, kHeardLately * limit_s_)) {
    heard.reset();
  }
  const Claim claim = judged(supervisor_id_, leads_, supervisor_of(in_state(kRecordName)), heard);
  if (claim == Claim::Granted) {
    granted_ = true;
    write_heard(in_state(kHeardName), {supervisor_id_, leads_, now, ::getpid()});
  }
  return claim;
}

void Agent::note_that_supervisor_is_heard() {
  constexpr double kBetween_s = 0.5;
  if (granted_ && now_s() - noted_s_ > kBetween_s && now_s() - heard_s_ < kBetween_s) {
    note_now();
  }
}

void Agent::note_now() {
  noted_s_ = now_s();
  write_heard(in_state(kHeardName), {supervisor_id_, leads_, noted_s_, ::getpid()});
}

// From here on older supervisors are refused.
void Agent::note_that_ranks_start() {
  leads_ = true;
  if (state_ && record_) {
    write_atomically(in_state(kRecordName), text_of(*record_));
    note_now();
  }
}

// Another one need not wait until it has not been heard of for long, unless it is that one already.
void Agent::note_that_supervisor_is_gone() {
  if (std::exchange(granted_, false)) {
    auto heard = read_heard(in_state(kHeardName));
    if (heard && heard->id == supervisor_id_) {
      heard->heard_s = 0;
      write_heard(in_state(kHeardName), *heard);
    }
  }
}

// Whether this device sees the supervisor's run folder itself; else it is to have a copy.
void Agent::take(const to_agent::Look& message) {
  const std::filesystem::path run = run_folder();
  std::error_code error;
  const bool there =
      is_mirrored_name(message.file) && std::filesystem::exists(run / message.file, error);
  if (!there && run.is_absolute()) {
    mirror_.emplace(run);
  }
  send(to_supervisor::Look{message.file, there});
}

// The record in the run's folder, or in a copy, where one is here.
std::optional<SupervisorRecord> Agent::record_of_folder() const {
  try {
    const SupervisorRecord here = read_supervisor_record(run_folder() / kRecordName);
    return here.run_number == run_ ? std::optional(here) : std::nullopt;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

// In a process of its own that outlives this one: it will start another agent here, which ends
// this. One device after the other, so that the first that can has the time to reach the others.
void Agent::take_over(double silent_s) {
  constexpr double kBetweenLooks_s = 1;
  constexpr double kLongestBetweenTries_s = 600;
  if (now_s() < next_take_over_s_ || place_ == 0 || !state_ || !record_ || ranks_finished_) {
    return;
  }
  next_take_over_s_ = now_s() + kBetweenLooks_s;
  const auto here = record_of_folder();
  const Index turn = turn_to_take_over(
      place_,
      std::ssize(record_->hosts),
      {record_->generation, record_->copies},
      here ? std::optional(RecordAge{here->generation, here->copies}) : std::nullopt);
  if (silent_s < kAgentPatience * limit_s_ + kBetweenTakers_s * static_cast<double>(turn)) {
    return;
  }
  next_take_over_s_ = now_s() + between_tries_s_;
  between_tries_s_ = std::min(2 * between_tries_s_, kLongestBetweenTries_s);
  if (here && state_of_run(run_folder()) == "finished") {
    ends_ = true;
    state_->remove();
    return;
  }
  if (here && here->stopped) {
    return;
  }
  const Descriptor log = open_without_links(run_folder() / kTakeOverLog, O_WRONLY | O_APPEND);
  start_apart(
      {.words = {program_path(), "run", "--take-over", (state_->path() / kRecordName).string()},
       .environment = environment_,
       .folder = folder_,
       .descriptors = {{STDOUT_FILENO, log.number()}, {STDERR_FILENO, log.number()}}});
}

void Agent::take_line(const std::string& line) {
  const auto message = message_in<to_agent::Message>(line);
  if (!message) {
    send(to_supervisor::Problem{
        "what the supervisor says cannot be read: it runs another program, or a line was damaged"});
    return;
  }
  try {
    std::visit([this](const auto& one) { take(one); }, *message);
  } catch (const std::exception& error) {
    send(to_supervisor::Problem{error.what()});
  }
}

void Agent::take(const to_agent::Kill& /*message*/) {
  next_world_.reset();
  kill_ranks();
  note_that_ranks_start();  // on other devices
}

void Agent::take(const to_agent::Wait& /*message*/) {
  next_world_.reset();
  kill_ranks();
  leads_ = false;  // one that has more devices may go on
  note_now();
}

void Agent::take(const to_agent::Record& message) {
  take_record(message.record);
  note_that_ranks_start();
}

void Agent::take(const to_agent::Signal& message) {
  stop_next_world(message.signal);
  signal_ranks(message.signal);
}

void Agent::take(const to_agent::FilePart& part) {
  if (mirror_) {
    mirror_->take(part);
  }
}

void Agent::take(const to_agent::End& message) {
  kill_ranks();
  note_that_supervisor_is_gone();
  place_ = 0;
  if (message.remove) {
    ends_ = true;
    if (!state_) {  // an agent before this one may have it
      take_state();
    }
    state_->remove();
  }
}

void Agent::take(const to_agent::Hello& hello) {
  run_ = hello.run;
  host_ = hello.host;
  expect_turns(hello.ranks);
  limit_s_ = static_cast<double>(hello.limit_ms) / 1000;
  folder_ = hello.folder;
  for (const auto& [name, value] : hello.environment) {
    if (travels(name)) {
      environment_[name] = value;
    }
  }
  place_ = hello.place;
  const std::string client = address_of_client();
  interface_ = client.empty() ? "" : interface_towards(client);
  take_record(hello.record);
  supervisor_id_ = {hello.record.generation, hello.record.supervisor};
  leads_ = hello.leads;
  const Claim claim = claim_of_supervisor();
  if (claim != Claim::Granted) {
    send(claim == Claim::Heard ? to_supervisor::Message(to_supervisor::Heard{})
                               : to_supervisor::Superseded{});
    return;
  }
  const auto folder = record_of_folder();
  if (folder && state_of_run(run_folder()) == "finished") {
    send(to_supervisor::Finished{});
    return;
  }
  if (hello.takes_over && folder && folder->stopped) {
    send(to_supervisor::Stopped{});
    return;
  }
  if (!hello.takes_over) {
    take_state();
    note_that_supervisor_is_heard();
  }
  send(to_supervisor::Hello{options_.version, host_name(), ::access(folder_.c_str(), X_OK) == 0});
}

}  // namespace tessera::engine
