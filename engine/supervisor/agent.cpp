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
#include <poll.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "engine/files/atomic_file.h"
#include "engine/files/own_file.h"
#include "engine/files/run_state.h"
#include "engine/supervisor/child_process.h"
#include "engine/supervisor/connection.h"
#include "engine/supervisor/folder_mirror.h"
#include "engine/supervisor/leadership.h"
#include "engine/supervisor/left_segments.h"
#include "engine/supervisor/message_stream.h"
#include "engine/supervisor/pmi_server.h"
#include "engine/supervisor/run_record.h"
#include "engine/supervisor/state_folder.h"
#include "engine/supervisor/supervision.h"
#include "engine/system/clock.h"
#include "engine/system/host_name.h"
#include "engine/system/limits.h"
#include "engine/system/system_memory.h"
#include "engine/system/test_point.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/quantities.h"

namespace tessera::engine {

namespace {

using nlohmann::json;

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
  void take(const json& message);
  void greet(const json& message);
  void start(const json& message);
  void start_rank(const json& message, int rank);
  void kill_ranks();
  void look_at_ranks();
  void end_ranks();
  void remove_segments() const;
  void look_at_rank(RankProcess& rank);
  void signal_ranks(int number);
  void look_at_stop_signal();
  void stop_next_world(int signal);
  void take_record(const json& message);
  [[nodiscard]] bool has_finished() const;
  void tell_rank(const json& message);
  [[nodiscard]] bool is_abandoned();
  void take_over(double silent_s);
  [[nodiscard]] bool has_run_folder(const std::filesystem::path& run) const;
  void take_state();
  [[nodiscard]] std::filesystem::path in_state(const char* name) const {
    return StateFolder::of_run(run_) / name;
  }
  [[nodiscard]] Claim claim_of_supervisor();
  void note_that_supervisor_is_heard();
  void note_now();
  void note_that_supervisor_is_gone();
  void note_that_ranks_start();
  void look_for(const std::string& token);

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
  std::optional<json> next_world_;  // once the processes of the last one are gone
  double next_world_s_ = 0;
  Index killed_for_memory_ = 0;
  std::time_t begun_ = 0;  // the run on this device
  std::optional<MirrorCopy> mirror_;
  json record_;            // of the run, for a supervisor that takes over
  std::string interface_;  // by which it has reached this device
  SupervisorId supervisor_id_;
  bool granted_ = false;  // this device has promised itself to that supervisor
  bool leads_ = false;    // which has started ranks
  Index place_ = 0;       // among the devices, the supervisor's own first
  double next_take_over_s_ = 0;
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
      if (const auto message = message_in(line)) {
        take(*message);
      }
    }
    note_that_supervisor_is_heard();
    look_at_ranks();
    if (next_world_ && (ranks_.empty() || now_s() > next_world_s_ + kLongestKill_s)) {
      const json message = *std::exchange(next_world_, std::nullopt);
      start(message);
    }
    if (now_s() - beat_s_ >= kBeat_s && !supervisor_.is_over()) {
      beat_s_ = now_s();
      supervisor_.send(json{{"is", "beat"}});
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
    supervisor_.send(json{{"is", "ending"}, {"signal", signal}});
    stop_next_world(signal);
    signal_ranks(signal);
  } else if (stops_since_s_) {
    ends_ = ranks_.empty() || now_s() - *stops_since_s_ > kLongestFarewell_s;
  }
}

// Ranks that would have been started: they have nothing to save.
void Agent::stop_next_world(int signal) {
  if (const auto message = std::exchange(next_world_, std::nullopt)) {
    for (const json& rank : message->value("ranks", json::array())) {
      supervisor_.send(json{{"is", "exit"},
                            {"world", number_in(*message, "world")},
                            {"rank", rank},
                            {"code", kSignalled + signal}});
    }
  }
}

void Agent::take_record(const json& message) {
  const auto record = message.find("record");
  record_ = record == message.end() ? json() : *record;
  if (record_.is_object() && place_ != 0) {
    record_["interface"] = interface_;
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
  std::vector<pollfd> waits;
  if (!supervisor_.is_over()) {
    waits.push_back({supervisor_.in(), POLLIN, 0});
    if (supervisor_.wants_to_write()) {
      waits.push_back({supervisor_.out(), POLLOUT, 0});
    }
  }
  for (const RankProcess& rank : ranks_) {
    waits.push_back({rank.process.descriptor(), POLLIN, 0});
    for (const LineStream* stream : {&rank.pmi, &rank.status}) {
      if (!stream->is_over()) {
        waits.push_back({stream->in(), POLLIN, 0});
      }
    }
  }
  constexpr int kLongest_ms = 100;
  ::poll(waits.data(), waits.size(), kLongest_ms);
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
  if (state_) {
    write_atomically(in_state(kRecordName), record_.dump(1) + "\n");
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
void Agent::look_for(const std::string& token) {
  const std::filesystem::path run = text_in(record_, "run_folder");
  std::error_code error;
  const bool there = is_mirrored_name(token) && std::filesystem::exists(run / token, error);
  if (!there && run.is_absolute()) {
    mirror_.emplace(run);
  }
  supervisor_.send(json{{"is", "look"}, {"file", token}, {"there", there}});
}

// Whether what the run has written so far is here, too.
bool Agent::has_run_folder(const std::filesystem::path& run) const {
  try {
    return read_supervisor_record(run / kRecordName).run_number == run_;
  } catch (const InputError&) {
    return false;
  }
}

// Whether the run has finished, as its folder says where this device has it, or a copy.
bool Agent::has_finished() const {
  const std::filesystem::path run = text_in(record_, "run_folder");
  return has_run_folder(run) && state_of_run(run) == "finished";
}

// In a process of its own that outlives this one: it will start another agent here, which ends
// this. One device after the other, so that the first that can has the time to reach the others;
// then those without a copy of the run folder, which can only learn that the run has finished.
void Agent::take_over(double silent_s) {
  constexpr double kBetweenLooks_s = 1;
  constexpr double kBetweenTries_s = 30;
  if (now_s() < next_take_over_s_ || place_ == 0 || !state_ || !record_.is_object() ||
      ranks_finished_) {
    return;
  }
  next_take_over_s_ = now_s() + kBetweenLooks_s;
  const std::string run = text_in(record_, "run_folder");
  const Index turn =
      place_ - 1 + (has_run_folder(run) ? 0 : std::ssize(record_.value("hosts", json::array())));
  if (silent_s < kAgentPatience * limit_s_ + kBetweenTakers_s * static_cast<double>(turn)) {
    return;
  }
  next_take_over_s_ = now_s() + kBetweenTries_s;
  if (has_finished()) {
    ends_ = true;
    state_->remove();
    return;
  }
  const Descriptor null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const Descriptor log(
      open_without_links(std::filesystem::path(run) / kTakeOverLog, O_WRONLY | O_APPEND));
  const int output = log.is_open() ? log.number() : null.number();
  start_apart(
      {.words = {program_path(), "run", "--take-over", (state_->path() / kRecordName).string()},
       .environment = environment_,
       .folder = folder_,
       .descriptors = {
           {STDIN_FILENO, null.number()}, {STDOUT_FILENO, output}, {STDERR_FILENO, output}}});
}

void Agent::take(const json& message) {
  const std::string what = text_in(message, "do");
  try {
    if (what == "hello") {
      greet(message);
    } else if (what == "start") {
      kill_ranks();
      next_world_ = message;
      next_world_s_ = now_s();
    } else if (what == "kill") {
      next_world_.reset();
      kill_ranks();
      note_that_ranks_start();  // on other devices
    } else if (what == "wait") {
      next_world_.reset();
      kill_ranks();
      leads_ = false;  // one that has more devices may go on
      note_now();
    } else if (what == "record") {
      take_record(message);
      note_that_ranks_start();
    } else if (what == "signal") {
      const int signal = static_cast<int>(number_in(message, "signal", SIGTERM));
      stop_next_world(signal);
      signal_ranks(signal);
    } else if (what == "pmi" || what == "tell") {
      tell_rank(message);
    } else if (what == "look") {
      look_for(text_in(message, "file"));
    } else if (what == "mirror") {
      if (mirror_) {
        mirror_->take(message);
      }
    } else if (what == "end") {
      kill_ranks();
      note_that_supervisor_is_gone();
      place_ = 0;
      if (number_in(message, "remove") != 0) {
        ends_ = true;
        if (!state_) {  // an agent before this one may have it
          take_state();
        }
        state_->remove();
      }
    }
  } catch (const std::exception& error) {
    supervisor_.send(json{{"is", "problem"}, {"text", error.what()}});
  }
}

void Agent::greet(const json& message) {
  run_ = text_in(message, "run");
  host_ = text_in(message, "host");
  expect_turns(number_in(message, "ranks", 1));
  limit_s_ = static_cast<double>(number_in(message, "limit_ms", 3000)) / 1000;
  folder_ = text_in(message, "folder");
  const auto variables = message.find("environment");
  if (variables != message.end() && variables->is_object()) {
    for (const auto& [name, value] : variables->items()) {
      if (value.is_string() && travels(name)) {
        environment_[name] = value.get<std::string>();
      }
    }
  }
  place_ = number_in(message, "place");
  const std::string client = address_of_client();
  interface_ = client.empty() ? "" : interface_towards(client);
  take_record(message);
  supervisor_id_ = {number_in(record_, "generation"), text_in(record_, "supervisor")};
  leads_ = number_in(message, "leads") != 0;
  const Claim claim = claim_of_supervisor();
  if (claim != Claim::Granted) {
    supervisor_.send(json{{"is", claim == Claim::Heard ? "heard" : "superseded"}});
    return;
  }
  if (has_finished()) {
    supervisor_.send(json{{"is", "finished"}});
    return;
  }
  // Who takes over may still find that it reaches too few devices.
  if (number_in(message, "takes_over") == 0) {
    take_state();
    note_that_supervisor_is_heard();
  }
  supervisor_.send(json{{"is", "hello"},
                        {"version", options_.version},
                        {"host", host_name()},
                        {"folder_there", ::access(folder_.c_str(), X_OK) == 0}});
}

void Agent::start(const json& message) {
  world_ = number_in(message, "world");
  const auto ranks = message.find("ranks");
  if (!state_ && is_run_number(run_)) {
    take_state();
  }
  if (!state_ || ranks == message.end() || !ranks->is_array()) {
    throw InputError("a world was to start before it was told of");
  }
  ranks_finished_ = false;
  keeps_ = true;
  note_that_ranks_start();
  if (const auto files = message.find("files"); files != message.end() && files->is_object()) {
    for (const auto& [name, text] : files->items()) {
      if (is_mirrored_name(name) && text.is_string()) {
        write_atomically(state_->path() / name, text.get<std::string>());
      }
    }
  }
  if (number_in(message, "forget") != 0) {
    state_->forget_kept();
  }
  test_point("ranks_start");
  for (const json& rank : *ranks) {
    start_rank(message, rank.is_number_integer() ? rank.get<int>() : 0);
  }
}

void Agent::start_rank(const json& message, int rank) {
  constexpr int kPmi = 3;
  constexpr int kStatus = 4;
  auto [pmi, rank_pmi] = socket_pair();
  auto [status, rank_status] = socket_pair();
  const Descriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int output = options_.output >= 0 ? options_.output : STDERR_FILENO;
  ProgramToStart program{.words = {},
                         .environment = environment_,
                         .folder = folder_,
                         .descriptors = {{STDIN_FILENO, null.number()},
                                         {STDOUT_FILENO, output},
                                         {STDERR_FILENO, STDERR_FILENO},
                                         {kPmi, rank_pmi.number()},
                                         {kStatus, rank_status.number()}}};
  // Files that came with the message are here in a folder that may have another name.
  const std::filesystem::path sent_from = text_in(message, "folder");
  for (const json& word : message.at("words")) {
    const std::filesystem::path path = word.get<std::string>();
    program.words.push_back(!sent_from.empty() && path.parent_path() == sent_from
                                ? (state_->path() / path.filename()).string()
                                : path.string());
  }
  const std::size_t here = message.at("ranks").size();
  program.environment["PMI_FD"] = fmt::format("{}", kPmi);
  program.environment["PMI_RANK"] = fmt::format("{}", rank);
  program.environment["PMI_SIZE"] = fmt::format("{}", number_in(message, "size", 1));
  program.environment["MPI_LOCALNRANKS"] = fmt::format("{}", here);
  program.environment["MPI_LOCALRANKID"] =
      fmt::format("{}", rank - message.at("ranks").front().get<int>());
  program.environment["TESSERA_AGENT_FD"] = fmt::format("{}", kStatus);
  program.environment["TESSERA_STATE_DIR"] = state_->path().string();
  program.environment["TESSERA_FAULTS"] = (state_->path() / kFaultsName).string();
  program.environment["TESSERA_COMMAND"] = message.value("typed", json::array()).dump();
  if (number_in(message, "again") != 0) {
    program.environment["TESSERA_STARTED_AGAIN"] = "1";
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
void Agent::tell_rank(const json& message) {
  if (number_in(message, "world") != world_) {
    return;
  }
  const bool pmi = text_in(message, "do") == "pmi";
  for (RankProcess& rank : ranks_) {
    if (!pmi || rank.rank == number_in(message, "rank", -1)) {
      (pmi ? rank.pmi : rank.status).send(text_in(message, "line"));
    }
  }
}

void Agent::look_at_rank(RankProcess& rank) {
  for (const std::string& line : rank.pmi.receive()) {
    if (const auto code = abort_code_in(line)) {
      rank.aborted = code;
      rank.process.kill_group();
    }
    supervisor_.send(json{{"is", "pmi"}, {"world", world_}, {"rank", rank.rank}, {"line", line}});
  }
  for (const std::string& line : rank.status.receive()) {
    rank.heard_s = now_s();
    rank.speaks = true;
    rank.told_late = false;
    auto message = message_in(line);
    if (message && message->find("beat") == message->end()) {
      supervisor_.send(
          json{{"is", "status"}, {"world", world_}, {"rank", rank.rank}, {"status", *message}});
    }
  }
  const double silent_s = now_s() - rank.heard_s;
  if (rank.speaks && !rank.told_late && silent_s > limit_s_ && !rank.process.look()) {
    rank.told_late = true;
    supervisor_.send(json{{"is", "late"},
                          {"world", world_},
                          {"rank", rank.rank},
                          {"silent_ms", static_cast<Index>(silent_s * 1000)}});
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
    supervisor_.send(json{{"is", "exit"},
                          {"world", world_},
                          {"rank", rank->rank},
                          {"code", end.code},
                          {"signal", end.signal},
                          {"limits", limits_of_ranks(std::ssize(ranks_))},
                          {"memory", kills > killed_for_memory_ ? 1 : 0}});
    killed_for_memory_ = kills;
    ranks_finished_ = ranks_finished_ || (end.code == 0 && end.signal == 0);
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
