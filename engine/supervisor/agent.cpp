#include "engine/supervisor/agent.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "engine/files/atomic_file.h"
#include "engine/files/own_file.h"
#include "engine/processes/child_process.h"
#include "engine/processes/line_stream.h"
#include "engine/run_files/run_summary.h"
#include "engine/supervisor/connection.h"
#include "engine/supervisor/folder_mirror.h"
#include "engine/supervisor/leadership.h"
#include "engine/supervisor/left_segments.h"
#include "engine/supervisor/pmi_server.h"
#include "engine/supervisor/protocol.h"
#include "engine/supervisor/run_record.h"
#include "engine/supervisor/state_folder.h"
#include "engine/supervisor/supervision.h"
#include "engine/system/clock.h"
#include "engine/system/exit_code.h"
#include "engine/system/host_name.h"
#include "engine/system/limits.h"
#include "engine/system/system_memory.h"
#include "engine/system/test_point.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/quantities.h"

namespace tessera::engine {

namespace {

// A process that has ended, but whose rank is still to be told of.
struct RankProcess {
  RankProcess(int number, ChildProcess started, LineStream pmi_end, LineStream status_end)
      : rank(number),
        process(std::move(started)),
        pmi(std::move(pmi_end)),
        status(std::move(status_end)),
        heard_s(now_s()) {}

  int rank;
  ChildProcess process;
  LineStream pmi;
  LineStream status;
  double heard_s;
  bool speaks = false;  // it has been heard of: before, it may still be starting
  bool told_late = false;
  std::optional<int> aborted;  // the exit code that it was to have when MPI gave up
};

class Agent {
 public:
  explicit Agent(const AgentOptions& options)
      : options_(options),
        supervisor_(Descriptor(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)),
                    Descriptor(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3))),
        heard_s_(now_s()) {}

  int run();

 private:
  void wait();
  void send(const to_supervisor::Message& message) { supervisor_.send(line_of(message)); }
  void take_line(const std::string& line);
  void take(const to_agent::Beat& /*a sign of life*/) {}
  void take(const to_agent::Hello& hello);
  void take(const to_agent::Start& start);
  void take(const to_agent::Kill& message);
  void take(const to_agent::Wait& message);
  void take(const to_agent::Record& message);
  void take(const to_agent::Signal& message);
  void take(const PmiLine& message);
  void take(const to_agent::Pause& message);
  void take(const to_agent::Look& message);
  void take(const to_agent::FilePart& part);
  void take(const to_agent::End& message);
  void start(const to_agent::Start& start);
  void start_rank(const to_agent::Start& start, int rank);
  void kill_ranks();
  void look_at_ranks();
  void end_ranks();
  void remove_segments() const;
  void look_at_rank(RankProcess& rank);
  void signal_ranks(int number);
  void look_at_stop_signal();
  void stop_next_world(int signal);
  void take_record(const SupervisorRecord& record);
  [[nodiscard]] bool is_abandoned();
  void take_over(double silent_s);
  [[nodiscard]] std::optional<SupervisorRecord> record_of_folder() const;
  void take_state();
  [[nodiscard]] std::filesystem::path in_state(const char* name) const {
    return StateFolder::of_run(run_) / name;
  }
  [[nodiscard]] std::filesystem::path run_folder() const {
    return record_ ? record_->run_folder : std::string();
  }
  [[nodiscard]] Claim claim_of_supervisor();
  void note_that_supervisor_is_heard();
  void note_now();
  void note_that_supervisor_is_gone();
  void note_that_ranks_start();

  AgentOptions options_;
  LineStream supervisor_;
  double heard_s_;  // when the supervisor was
  double beat_s_ = 0;
  double limit_s_ = kUsualSilence_s;
  std::string run_;
  std::string host_;  // this device, as the host file has it
  std::optional<StateFolder> state_;
  bool keeps_ = false;  // there may be what ranks have kept in it
  std::map<std::string, std::string> environment_;
  std::string folder_;
  std::list<RankProcess> ranks_;
  Index world_ = 0;
  std::optional<to_agent::Start> next_world_;  // once the processes of the last one are gone
  double next_world_s_ = 0;
  Index killed_for_memory_ = 0;
  std::time_t begun_ = 0;  // the run on this device
  std::optional<MirrorCopy> mirror_;
  std::optional<SupervisorRecord> record_;  // for a supervisor that takes over
  std::string interface_;                   // by which it has reached this device
  SupervisorId supervisor_id_;
  bool granted_ = false;  // this device has promised itself to that supervisor
  bool leads_ = false;    // which has started ranks
  Index place_ = 0;       // among the devices, the supervisor's own first
  double next_take_over_s_ = 0;
  double between_tries_s_ = 30;
  double noted_s_ = 0;                   // when it was last noted that the supervisor is heard
  std::optional<double> stops_since_s_;  // this agent itself was told to stop
  bool ranks_finished_ = false;          // one of this world has ended well: all have
  bool ends_ = false;
};

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

// What a device has little of that ranks may have failed for.
std::string limits_of_ranks(Index ranks) {
  constexpr Index kMpiOfRank = Index{8} << 20U;  // twice what UCX takes
  std::error_code error;
  const std::filesystem::path memory = "/dev/shm";
  const auto room = std::filesystem::space(memory, error);
  std::string text = tight_limits();
  if (!error && std::cmp_less(room.available, ranks * kMpiOfRank)) {
    text += fmt::format("{}{} has {} left, of which MPI takes several MiB for each rank",
                        text.empty() ? "" : ", ",
                        memory.string(),
                        readable_bytes(static_cast<Index>(room.available)));
  }
  return text;
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

// Before this agent itself ends: what they leave behind is to be removed.
void Agent::end_ranks() {
  kill_ranks();
  const double killed_s = now_s();
  while (!ranks_.empty() && now_s() < killed_s + kLongestKill_s) {
    std::erase_if(ranks_, [](RankProcess& rank) { return rank.process.look().has_value(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  remove_segments();
}

void Agent::remove_segments() const {
  if (begun_ != 0) {
    remove_left_segments(begun_);
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

void Agent::take(const to_agent::Start& start) {
  kill_ranks();
  next_world_ = start;
  next_world_s_ = now_s();
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

void Agent::start(const to_agent::Start& start) {
  world_ = start.world;
  if (!state_ && is_run_number(run_)) {
    take_state();
  }
  if (!state_) {
    throw InputError("a world was to start before it was told of");
  }
  ranks_finished_ = false;
  keeps_ = true;
  note_that_ranks_start();
  write_atomically(state_->path() / kRequestName, text_of(start.request));
  if (start.forget) {
    state_->forget_kept();
  }
  test_point("ranks_start");
  for (const int rank : start.ranks) {
    start_rank(start, rank);
  }
}

void Agent::start_rank(const to_agent::Start& start, int rank) {
  constexpr int kPmi = 3;
  constexpr int kStatus = 4;
  auto [pmi, rank_pmi] = socket_pair();
  auto [status, rank_status] = socket_pair();
  const int output = options_.output >= 0 ? options_.output : STDERR_FILENO;
  ProgramToStart program{.words = start.words,
                         .environment = environment_,
                         .folder = folder_,
                         .descriptors = {{STDOUT_FILENO, output},
                                         {STDERR_FILENO, STDERR_FILENO},
                                         {kPmi, rank_pmi.number()},
                                         {kStatus, rank_status.number()}}};
  program.environment["PMI_FD"] = fmt::format("{}", kPmi);
  program.environment["PMI_RANK"] = fmt::format("{}", rank);
  program.environment["PMI_SIZE"] = fmt::format("{}", start.size);
  program.environment["MPI_LOCALNRANKS"] = fmt::format("{}", start.ranks.size());
  program.environment["MPI_LOCALRANKID"] = fmt::format("{}", rank - start.ranks.front());
  program.environment[rank_variable::kAgent] = fmt::format("{}", kStatus);
  program.environment[rank_variable::kStateFolder] = state_->path().string();
  program.environment[rank_variable::kRequest] = (state_->path() / kRequestName).string();
  program.environment[rank_variable::kFaults] = (state_->path() / kFaultsName).string();
  program.environment[rank_variable::kCommand] = text_of_words(start.typed);
  if (start.again) {
    program.environment[rank_variable::kStartedAgain] = "1";
  }
  ranks_.emplace_back(
      rank, ChildProcess(program), LineStream(std::move(pmi)), LineStream(std::move(status)));
}

void Agent::kill_ranks() {
  for (const RankProcess& rank : ranks_) {
    rank.process.kill_group();
  }
}

void Agent::signal_ranks(int number) {
  if (number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGUSR1) {
    for (const RankProcess& rank : ranks_) {
      rank.process.signal(number);
    }
  }
}

// Of an older world: those ranks are gone.
void Agent::take(const PmiLine& message) {
  for (RankProcess& rank : ranks_) {
    if (message.world == world_ && rank.rank == message.rank) {
      rank.pmi.send(message.line);
    }
  }
}

void Agent::take(const to_agent::Pause& message) {
  for (RankProcess& rank : ranks_) {
    if (message.world == world_) {
      rank.status.send(line_of(to_rank::Pause{}));
    }
  }
}

void Agent::look_at_rank(RankProcess& rank) {
  for (const std::string& line : rank.pmi.receive()) {
    if (const auto code = abort_code_in(line)) {
      rank.aborted = code;
      rank.process.kill_group();
    }
    send(PmiLine{world_, rank.rank, line});
  }
  for (const std::string& line : rank.status.receive()) {
    rank.heard_s = now_s();
    rank.speaks = true;
    rank.told_late = false;
    const auto message = message_in<of_rank::Message>(line);
    if (message && !std::holds_alternative<of_rank::Beat>(*message)) {
      send(to_supervisor::Status{world_, rank.rank, *message});
    }
  }
  const double silent_s = now_s() - rank.heard_s;
  if (rank.speaks && !rank.told_late && silent_s > limit_s_ && !rank.process.look()) {
    rank.told_late = true;
    send(to_supervisor::Late{world_, rank.rank, static_cast<Index>(silent_s * 1000)});
  }
}

void Agent::look_at_ranks() {
  for (RankProcess& rank : ranks_) {
    look_at_rank(rank);
  }
  for (auto rank = ranks_.begin(); rank != ranks_.end();) {
    if (!rank->process.look()) {
      ++rank;
      continue;
    }
    look_at_rank(*rank);  // what it said last
    const ProcessEnd end = rank->aborted ? ProcessEnd{*rank->aborted, 0} : *rank->process.look();
    const Index kills = kills_for_memory();
    send(to_supervisor::Exit{.world = world_,
                             .rank = rank->rank,
                             .code = end.code,
                             .signal = end.signal,
                             .limits = limits_of_ranks(std::ssize(ranks_)),
                             .memory = kills > killed_for_memory_});
    killed_for_memory_ = kills;
    ranks_finished_ = ranks_finished_ || end == ProcessEnd();
    rank = ranks_.erase(rank);
    if (ranks_.empty()) {
      remove_segments();
    }
  }
}

}  // namespace

int run_agent(const AgentOptions& options) {
  Agent agent(options);
  return agent.run();
}

}  // namespace tessera::engine
