#include "engine/supervisor/supervisor.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <map>
#include <optional>
#include <poll.h>
#include <set>
#include <unistd.h>

#include "engine/files/atomic_file.h"
#include "engine/supervisor/full_disk.h"
#include "engine/supervisor/roster.h"
#include "engine/supervisor/run_copy.h"
#include "engine/supervisor/spare_plans.h"
#include "engine/supervisor/state_folder.h"
#include "engine/supervisor/supervision.h"
#include "engine/supervisor/training_words.h"
#include "engine/supervisor/world.h"
#include "engine/system/clock.h"
#include "engine/system/stop_request.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/printable.h"
#include "partitioner/cost/cluster_profile.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): not in every unistd.h

namespace tessera::engine {

namespace {

using nlohmann::json;

constexpr int kNoGoingOn = 75;

// Faults without a finished step between them, before a device that had them is left out, or, where
// none is left to leave out, the run is given up.
constexpr int kMostFaultsInARow = 3;

// From a rank's end until all others have ended by themselves.
constexpr double kLongestEnd_s = 70;

std::string name_of_signal(int number) {
  const char* const name = ::sigabbrev_np(number);
  return name == nullptr ? fmt::format("signal {}", number) : std::string("SIG") + name;
}

json environment_for_ranks() {
  json variables = json::object();
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    const std::string name = text.substr(0, text.find('='));
    if (travels(name) && name.size() < text.size()) {
      variables[name] = text.substr(name.size() + 1);
    }
  }
  return variables;
}

double unix_s() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

class SupervisedRun {
 public:
  explicit SupervisedRun(const SupervisorRequest& request);
  int run();

 private:
  void reach_devices();
  void wait_for_agents();
  void start_refused_agents();
  void leave_out_missing();
  int go_on_to_the_end();
  void wait();
  void start_agent(int device);
  void take_messages();
  void take(int device, const json& message);
  void take_hello(int device, const json& message);
  void take_refusal(int device);
  void take_status(int device, const json& message);
  void take_exit(const json& message);
  void look_at_agents();
  void look_at_world();
  void look_for_hanging_ranks();
  void look_at_disk();
  void look_for_returns();
  void look_at_signals();
  void start_world();
  void plan_ahead();
  void end_agents(bool remove);
  void lose(int device, const std::string& what);
  void fault(const std::string& what, int device, bool leave_out);
  void note_fault(const std::string& what, int device) const;
  void note_event(const std::string& kind,
                  const std::string& what,
                  int device,
                  double since_unix_s) const;
  void write_record() const;
  [[nodiscard]] bool may_take_over() const;
  void keep_copy();
  void finish_copy();
  void expect_same_program(int device, const json& message);
  [[nodiscard]] std::vector<int> devices_of_ranks() const;
  [[nodiscard]] std::vector<std::string> words_now() const;
  [[nodiscard]] json files_named_in(const std::vector<std::string>& words) const;
  [[nodiscard]] std::string cluster_of(const std::vector<int>& devices) const;
  void say(const std::string& text) const { request_.say(printable(text)); }
  [[nodiscard]] const std::string& name_of(int device) const { return link(device).host().name; }
  [[nodiscard]] AgentLink& link(int device) { return agents_[static_cast<std::size_t>(device)]; }
  [[nodiscard]] const AgentLink& link(int device) const {
    return agents_[static_cast<std::size_t>(device)];
  }

  const SupervisorRequest& request_;
  double silence_s_;
  SupervisorRecord record_;
  std::deque<AgentLink> agents_;  // this machine's first
  std::vector<int> file_order_;   // place in the host file of each
  Roster roster_;
  std::map<int, double> refused_;  // devices that another supervisor has, and when they said so
  std::optional<World> world_;
  Index worlds_ = 0;
  double beat_s_ = 0;
  int signal_ = 0;
  bool pausing_ = false;
  double pausing_since_s_ = 0;
  std::optional<double> fault_s_;  // the first since a step was finished
  int faults_in_a_row_ = 0;
  double change_s_ = 5;    // what the last change of devices took
  std::string phase_;      // of rank 0
  Index phase_steps_ = 0;  // what it should take at most, 0: unknown
  Index phase_bytes_ = 0;  // that it may have to write
  double phase_since_s_ = 0;
  double worked_s_ = 0;  // when a rank has shown a sign of work
  std::set<int> stuck_;  // ranks that have shown none for long, and do not wait for others either
  bool recorded_ = false;
  bool met_full_disk_ = false;        // ranks of this world have
  std::optional<double> full_since_;  // ranks wait for room on the disk
  std::optional<SparePlans> spare_plans_;
  RunCopy copy_;
  std::optional<int> exit_code_;
};

SupervisedRun::SupervisedRun(const SupervisorRequest& request)
    : request_(request),
      silence_s_(request.silence_s > 0 ? request.silence_s : kUsualSilence_s),
      record_(request.record),
      roster_(static_cast<int>(request.record.hosts.size())),
      copy_(request.record.run_folder) {
  if (record_.run_number.empty()) {
    record_.run_number = new_run_number();
  }
  // Newer than whatever has been heard of here, so that an older supervisor gives way.
  const auto known = StateFolder::of_run(record_.run_number) / kRecordName;
  record_.generation = std::max(record_.generation, supervisor_of(known).generation) + 1;
  record_.supervisor = new_run_number();
  spare_plans_.emplace(StateFolder::of_run(record_.run_number));
  const int here = place_of_this_machine(record_.hosts);
  if (here < 0) {
    throw InputError(
        "this machine is not in the host file: start the run on one of its devices, or add it");
  }
  file_order_.push_back(here);
  for (int place = 0; place < roster_.size(); ++place) {
    if (place != here) {
      file_order_.push_back(place);
    }
  }
  for (const int place : file_order_) {
    agents_.emplace_back(record_.hosts[static_cast<std::size_t>(place)], place == here);
  }
}

int SupervisedRun::run() {
  const OrderlyStop orderly;  // ranks say what they do
  try {
    reach_devices();
    return go_on_to_the_end();
  } catch (...) {
    if (worlds_ == 0 && !request_.goes_on) {
      end_agents(true);  // nothing was kept
    }
    throw;
  }
}

int SupervisedRun::go_on_to_the_end() {
  if (!exit_code_ && request_.takes_over && !may_take_over()) {
    say("too few devices can be reached to take this run over");
    return kNoGoingOn;
  }
  if (!exit_code_) {
    start_world();
  }
  while (!exit_code_) {
    wait();
    take_messages();
    look_at_signals();
    look_at_agents();
    if (!exit_code_) {
      look_at_world();
    }
    if (!exit_code_) {
      look_for_returns();
      keep_copy();
      plan_ahead();
    }
  }
  finish_copy();
  // What ranks kept is for a run that may go on without a checkpoint.
  end_agents(*exit_code_ != kNoGoingOn);
  return *exit_code_;
}

// Where the network has come apart two supervisors could go on otherwise, each with some of the
// devices. Of two devices one alone is left when the other has gone.
bool SupervisedRun::may_take_over() const {
  const auto reached = std::count_if(
      agents_.begin(), agents_.end(), [](const AgentLink& agent) { return agent.is_ready(); });
  return roster_.size() == 2 || 2 * static_cast<int>(reached) > roster_.size();
}

void SupervisedRun::keep_copy() {
  if (recorded_) {
    copy_.keep(agents_, roster_);
  }
}

void SupervisedRun::finish_copy() {
  constexpr double kLongest_s = 20;
  const double end_s = now_s() + kLongest_s;
  while (!copy_.finish(agents_, roster_) && now_s() < end_s) {
    wait();
    for (AgentLink& agent : agents_) {
      (void)agent.receive();
    }
  }
}

void SupervisedRun::start_agent(int device) {
  // What ssh says of a device that is away is said once.
  link(device).start(request_.agents,
                     world_.has_value(),
                     json{{"do", "hello"},
                          {"run", record_.run_number},
                          {"limit_ms", static_cast<Index>(silence_s_ * 1000)},
                          {"folder", record_.folder},
                          {"place", device},
                          {"takes_over", request_.takes_over ? 1 : 0},
                          {"leads", worlds_ > 0 ? 1 : 0},
                          {"record", to_json(record_)},
                          {"environment", environment_for_ranks()}});
}

void SupervisedRun::reach_devices() {
  for (int device = 0; device < roster_.size(); ++device) {
    start_agent(device);
  }
  wait_for_agents();
  if (!exit_code_ && !refused_.empty()) {
    say(fmt::format("a supervisor of this run is heard on {}: it has the run, and this one ends",
                    name_of(refused_.begin()->first)));
    exit_code_ = kNoGoingOn;
  }
  if (!exit_code_) {
    leave_out_missing();
  }
}

// Those that have promised themselves to another supervisor are asked again: it may be gone, and
// its agents not know yet, or about to find that it is refused itself. An agent that was ready is
// ended by that of another one.
void SupervisedRun::start_refused_agents() {
  constexpr double kBetween_s = 1;
  for (int device = 0; device < roster_.size(); ++device) {
    if (request_.goes_on && link(device).is_ready() && link(device).is_over()) {
      link(device).drop();
      refused_[device] = now_s();
    }
    const auto refused = refused_.find(device);
    if (refused != refused_.end() && link(device).state() == AgentLink::State::Absent &&
        now_s() - refused->second > kBetween_s) {
      start_agent(device);
    }
  }
}

void SupervisedRun::wait_for_agents() {
  constexpr double kLongest_s = 30;
  const double begun_s = now_s();
  // Until one that is gone is not heard any more.
  const auto asks_again = [this, end_s = begun_s + (kHeardLately + 1) * silence_s_] {
    return !refused_.empty() && now_s() < end_s;
  };
  const auto missing = [this] {
    return std::find_if(
        agents_.begin(), agents_.end(), [](const AgentLink& agent) { return !agent.is_ready(); });
  };
  while (missing() != agents_.end() && !exit_code_ &&
         (now_s() < begun_s + kLongest_s || asks_again())) {
    wait();
    take_messages();
    if (stop_signal() != 0) {
      throw Stopped(stop_signal());
    }
    for (AgentLink& agent : agents_) {
      if (agent.state() == AgentLink::State::Starting && agent.is_over()) {
        agent.drop();
      }
    }
    start_refused_agents();
    const bool none_starting = std::none_of(agents_.begin(), agents_.end(), [](const auto& agent) {
      return agent.state() == AgentLink::State::Starting;
    });
    if (none_starting && !asks_again()) {
      break;
    }
  }
}

// At the start a device that is not there is a mistake in the host file, more likely than a fault;
// a run that goes on leaves it out.
void SupervisedRun::leave_out_missing() {
  for (int device = 0; device < roster_.size(); ++device) {
    if (link(device).is_ready()) {
      continue;
    }
    if (!request_.goes_on || link(device).is_here()) {
      throw InputError(
          fmt::format("{} cannot be reached: does `{} {} true` work without a question, "
                      "and is {} there?",
                      name_of(device),
                      request_.agents.remote_shell,
                      name_of(device),
                      request_.agents.program));
    }
    link(device).drop();
    roster_.lose(device, now_s());
    say(name_of(device) + " cannot be reached and is left out until it can");
  }
}

void SupervisedRun::wait() {
  std::vector<pollfd> waits;
  for (const AgentLink& agent : agents_) {
    if (const LineStream* stream = agent.stream(); stream != nullptr && !stream->is_over()) {
      waits.push_back({stream->in(), POLLIN, 0});
      if (stream->wants_to_write()) {
        waits.push_back({stream->out(), POLLOUT, 0});
      }
    }
  }
  constexpr int kLongest_ms = 50;
  ::poll(waits.data(), waits.size(), kLongest_ms);
  for (AgentLink& agent : agents_) {
    agent.flush();
  }
  if (now_s() - beat_s_ >= kBeat_s) {
    beat_s_ = now_s();
    for (AgentLink& agent : agents_) {
      agent.send(json{{"do", "beat"}});
    }
  }
}

void SupervisedRun::take_messages() {
  for (int device = 0; device < roster_.size(); ++device) {
    for (const json& message : link(device).receive()) {
      take(device, message);
    }
  }
}

void SupervisedRun::take(int device, const json& message) {
  const std::string what = text_in(message, "is");
  if (what == "hello") {
    take_hello(device, message);
    return;
  }
  if (what == "look") {
    copy_.take_look(device, message);
    return;
  }
  if (what == "heard") {
    take_refusal(device);
    return;
  }
  if (what == "superseded") {
    say("another device has taken this run over: it ends here");
    exit_code_ = kNoGoingOn;
    return;
  }
  if (what == "problem") {
    say(name_of(device) + ": " + text_in(message, "text"));
    return;
  }
  const Index rank = number_in(message, "rank", -1);
  if (!world_ || number_in(message, "world") != world_->number() || !world_->has_rank(rank) ||
      world_->device_of(static_cast<int>(rank)) != device) {
    return;
  }
  if (what == "pmi") {
    for (const auto& answer :
         world_->pmi().take(static_cast<int>(rank), text_in(message, "line"))) {
      link(world_->device_of(answer.rank))
          .send(json{{"do", "pmi"},
                     {"world", world_->number()},
                     {"rank", answer.rank},
                     {"line", answer.line}});
    }
  } else if (what == "status") {
    take_status(device, message);
  } else if (what == "exit") {
    take_exit(message);
  } else if (what == "late") {
    fault(fmt::format("rank {} on {} has not answered for {:.1f} s",
                      rank,
                      name_of(device),
                      static_cast<double>(number_in(message, "silent_ms")) / 1000),
          device,
          false);
  }
}

// The device has promised itself to another supervisor.
void SupervisedRun::take_refusal(int device) {
  if (worlds_ > 0 ? link(device).is_here() : request_.takes_over) {
    say(fmt::format("the supervisor of this run is heard on {}", name_of(device)));
    exit_code_ = kNoGoingOn;
    return;
  }
  link(device).drop();
  if (worlds_ > 0) {
    roster_.missed(device, now_s());
  } else {
    refused_[device] = now_s();
  }
}

void SupervisedRun::expect_same_program(int device, const json& message) {
  if (text_in(message, "version") != request_.version) {
    throw InputError(fmt::format("{} runs another program ({}) than this machine ({})",
                                 name_of(device),
                                 printable(text_in(message, "version")),
                                 request_.version));
  }
  if (number_in(message, "folder_there", 1) == 0 || message.value("folder_there", true) == false) {
    throw InputError(fmt::format("{}: there is no folder {}, in which the run was started here",
                                 name_of(device),
                                 record_.folder));
  }
}

void SupervisedRun::take_hello(int device, const json& message) {
  try {
    expect_same_program(device, message);
  } catch (const InputError& error) {
    if (!world_) {
      throw;
    }
    say(error.what());
    link(device).drop();
    roster_.missed(device, now_s());
    return;
  }
  link(device).ready();
  refused_.erase(device);
  roster_.reach(device, now_s());
}

void SupervisedRun::take_status(int device, const json& message) {
  const auto found = message.find("status");
  if (found == message.end() || !found->is_object()) {
    return;
  }
  const json& status = *found;
  if (number_in(message, "rank") == 0 && status.find("phase") != status.end()) {
    phase_ = text_in(status, "phase");
    phase_steps_ = number_in(status, "steps");
    phase_bytes_ = number_in(status, "bytes");
    phase_since_s_ = now_s();
    if (!recorded_ && phase_ == "steps") {  // the run has its folder
      recorded_ = true;
      write_record();
    }
  }
  if (number_in(message, "rank") == 0 && status.find("step") != status.end()) {
    const Index step = number_in(status, "step");
    world_->finish_step(step, number_in(status, "last"), now_s());
    if (fault_s_) {
      change_s_ = now_s() - *fault_s_;
      say(fmt::format("step {} is done, {:.1f} s after the last one", step, change_s_));
    }
    fault_s_.reset();
    faults_in_a_row_ = 0;
  }
  if (status.find("works") != status.end()) {
    worked_s_ = now_s();
    stuck_.erase(static_cast<int>(number_in(message, "rank")));
  } else if (status.find("stuck") != status.end()) {
    stuck_.insert(static_cast<int>(number_in(message, "rank")));
  }
  const auto silent = status.find("silent");
  if (silent != status.end() && silent->is_array() && !silent->empty()) {
    const json& first = silent->front();
    const Index rank = first.is_number_integer() ? first.get<Index>() : -1;
    if (world_->has_rank(rank)) {
      const int other = world_->device_of(static_cast<int>(rank));
      fault(fmt::format("{} has heard nothing of {}", name_of(device), name_of(other)),
            other,
            faults_in_a_row_ > 0 && !link(other).is_here());
    }
  }
}

void SupervisedRun::take_exit(const json& message) {
  const auto rank = static_cast<int>(number_in(message, "rank"));
  const ProcessEnd end{static_cast<int>(number_in(message, "code")),
                       static_cast<int>(number_in(message, "signal"))};
  world_->finish_rank(rank, end);
  const int device = world_->device_of(rank);
  if (pausing_ && end.signal == 0 && (end.code == kPaused || end.code == 0)) {
    return;
  }
  if (end.signal != 0) {
    const bool memory = number_in(message, "memory") != 0;
    fault(fmt::format("rank {} on {} {}",
                      rank,
                      name_of(device),
                      memory ? "was killed since memory ran out"
                             : fmt::format("was ended by {}", name_of_signal(end.signal))),
          device,
          memory && roster_.taking_part().size() > 1 && !link(device).is_here());
  } else if (end.code == kWrongInput && lacks_room(record_.run_folder)) {
    met_full_disk_ = true;
  } else if (!is_deliberate(end)) {
    fault(fmt::format("rank {} on {} ended with code {}", rank, name_of(device), end.code),
          device,
          false);
  }
}

void SupervisedRun::look_at_signals() {
  if (signal_ == 0 && stop_signal() != 0) {
    signal_ = stop_signal();
    for (AgentLink& agent : agents_) {
      agent.send(json{{"do", "signal"}, {"signal", signal_}});
    }
  }
}

void SupervisedRun::look_at_agents() {
  for (int device = 0; device < roster_.size() && !exit_code_; ++device) {
    AgentLink& agent = link(device);
    if (agent.state() == AgentLink::State::Absent) {
      continue;
    }
    constexpr double kLongestStart_s = 10;
    const double silent_s = now_s() - agent.heard_s();
    const bool slow_start = agent.state() == AgentLink::State::Starting &&
                            now_s() - agent.started_s() > kLongestStart_s;
    if (agent.is_over()) {
      lose(device, name_of(device) + " has closed the connection");
    } else if (slow_start || (agent.is_ready() && silent_s > silence_s_)) {
      lose(device, fmt::format("{} has not answered for {:.1f} s", name_of(device), silent_s));
    }
  }
}

void SupervisedRun::lose(int device, const std::string& what) {
  link(device).drop();
  if (roster_.takes_part(device)) {
    fault(what, device, true);
  } else {
    roster_.missed(device, now_s());
  }
}

// Ranks of this world are of no use any more: the next one starts at once.
void SupervisedRun::fault(const std::string& what, int device, bool leave_out) {
  if (exit_code_) {
    return;
  }
  ++faults_in_a_row_;
  fault_s_ = fault_s_.value_or(world_ ? world_->moved_s() : now_s());
  note_fault(what, device);
  if (signal_ != 0) {
    exit_code_ = 128 + signal_;
    return;
  }
  if (link(device).is_here() && !link(device).is_ready() && faults_in_a_row_ <= kMostFaultsInARow) {
    say(what);
    start_agent(device);  // somebody has killed it; this machine itself is there
    world_.reset();
    return;
  }
  const bool several = roster_.taking_part().size() > 1;
  const bool again = faults_in_a_row_ >= kMostFaultsInARow;
  if (!link(device).is_here() && (leave_out || (again && several))) {
    roster_.lose(device, now_s());
    if (link(device).is_ready()) {  // what was wrong with its rank may be over
      roster_.reach(device, now_s());
    }
  } else if (again) {
    say(fmt::format(
        "{}; {} times in a row without a finished step: given up", what, faults_in_a_row_));
    exit_code_ = kNoGoingOn;
    return;
  }
  say(fmt::format(
      "{}: going on {}",
      what,
      roster_.takes_part(device)
          ? "with the same devices"
          : fmt::format("with {} of {} devices", roster_.taking_part().size(), roster_.size())));
  start_world();
}

void SupervisedRun::note_fault(const std::string& what, int device) const {
  // Since the last finished step.
  note_event("fault", what, device, unix_s() - (world_ ? now_s() - world_->moved_s() : 0));
}

// For rank 0, which has the events of the run.
void SupervisedRun::note_event(const std::string& kind,
                               const std::string& what,
                               int device,
                               double since_unix_s) const {
  std::ofstream file(StateFolder::of_run(record_.run_number) / kFaultsName, std::ios::app);
  file << json{{"kind", kind},
               {"unix_s", since_unix_s},
               {"text", what},
               {"device", name_of(device)}}
              .dump()
       << '\n';
}

void SupervisedRun::look_at_world() {
  if (!world_) {
    if (link(0).is_ready()) {
      start_world();
    }
    return;
  }
  if (world_->all_ended()) {
    const auto& failure = world_->first_failure();
    if (pausing_ && failure && failure->code == kPaused) {
      start_world();
    } else if (met_full_disk_ && (worlds_ > 1 || request_.goes_on || world_->steps_done() > 0)) {
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

void SupervisedRun::look_for_hanging_ranks() {
  const auto late_s = longest_phase_s(
      phase_, {.step_s = world_->step_s(), .steps = phase_steps_, .bytes = phase_bytes_});
  const double moved_s = std::max(world_->moved_s(), phase_since_s_);
  if (!late_s) {
    const double idle_s = now_s() - std::max(moved_s, worked_s_);
    if (idle_s > longest_idle_s(silence_s_)) {
      const int rank = stuck_.empty() ? 0 : *stuck_.begin();
      const int device = world_->device_of(rank);
      fault(fmt::format(
                "nothing was done for {:.0f} s{}",
                idle_s,
                stuck_.empty() ? "" : fmt::format(": rank {} on {} hangs", rank, name_of(device))),
            device,
            faults_in_a_row_ > 0 && !stuck_.empty() && !link(device).is_here());
    }
    return;
  }
  if (pausing_ && now_s() - std::max(pausing_since_s_, phase_since_s_) > *late_s) {
    fault("ranks did not pause", 0, false);
  } else if (now_s() - moved_s > *late_s) {
    fault(fmt::format("no step was finished for {:.0f} s", now_s() - moved_s), 0, false);
  }
}

// All ranks have ended since the disk of the run folder was full. What they keep in memory stays;
// they go on from it as soon as there is room.
void SupervisedRun::look_at_disk() {
  constexpr double kLongestFull_s = 24 * 3600;
  if (!full_since_) {
    full_since_ = now_s();
    fault_s_ = fault_s_.value_or(world_->moved_s());
    const std::string what = fmt::format("the disk with {} is full", record_.run_folder);
    note_fault(what, 0);
    say(what + ": training waits until there is room");
  }
  if (signal_ != 0) {
    exit_code_ = 128 + signal_;
  } else if (!lacks_room(record_.run_folder)) {
    say("there is room on the disk again: going on");
    start_world();
  } else if (now_s() - *full_since_ > kLongestFull_s) {
    exit_code_ = world_->first_failure()->code;
  }
}

void SupervisedRun::look_for_returns() {
  for (int device = 0; device < roster_.size(); ++device) {
    if (roster_.is_to_be_tried(device, now_s()) &&
        link(device).state() == AgentLink::State::Absent) {
      try {
        start_agent(device);
      } catch (const InputError&) {
        roster_.missed(device, now_s());
      }
    }
  }
  if (!world_ || pausing_ || world_->ended() > 0 || world_->steps_done() < 2 || signal_ != 0) {
    return;
  }
  const std::vector<int> back = roster_.worth_taking_back(
      {world_->step_s(), world_->last_step() - world_->step(), change_s_}, now_s());
  if (back.empty()) {
    return;
  }
  std::vector<std::string> names;
  for (const int device : back) {
    names.push_back(name_of(device));
    roster_.take_back(device);
  }
  const std::string what = fmt::format("{} {} back: taking part again from the next step",
                                       fmt::join(names, ", "),
                                       names.size() == 1 ? "is" : "are");
  say(what);
  note_event("return", what, back.front(), unix_s());
  pausing_ = true;
  pausing_since_s_ = now_s();
  for (AgentLink& agent : agents_) {
    agent.send(json{{"do", "tell"}, {"world", world_->number()}, {"line", R"({"pause":1})"}});
  }
}

std::vector<int> SupervisedRun::devices_of_ranks() const {
  std::vector<int> devices;
  for (const int device : roster_.taking_part()) {
    devices.insert(devices.end(), static_cast<std::size_t>(link(device).host().ranks), device);
  }
  return devices;
}

// The profile of these devices, in a file; empty where none is known.
std::string SupervisedRun::cluster_of(const std::vector<int>& devices) const {
  const std::string given = value_of(record_.words, "--cluster");
  if (given.empty()) {
    return "";
  }
  const partitioner::ClusterProfile all = partitioner::read_cluster_profile(given);
  std::vector<int> first_rank(record_.hosts.size());
  int ranks = 0;
  for (std::size_t place = 0; place < record_.hosts.size(); ++place) {
    first_rank[place] = ranks;
    ranks += record_.hosts[place].ranks;
  }
  std::vector<int> rows;
  for (const int device : devices) {
    const auto place = static_cast<std::size_t>(file_order_[static_cast<std::size_t>(device)]);
    for (int i = 0; i < record_.hosts[place].ranks; ++i) {
      rows.push_back(first_rank[place] + i);
    }
  }
  if (ranks > all.size()) {
    return "";
  }
  const std::filesystem::path file = StateFolder::of_run(record_.run_number) /
                                     fmt::format("cluster-{}.toml", fmt::join(devices, "-"));
  write_atomically(file, to_text(devices_of(all, rows)));
  return file.string();
}

std::vector<std::string> SupervisedRun::words_now() const {
  std::vector<std::string> words = record_.words;
  if (worlds_ > 1 || request_.goes_on) {
    words = without(words, {{}, {"--force"}});
  }
  if (static_cast<int>(roster_.taking_part().size()) < roster_.size()) {
    const std::vector<int> devices = roster_.taking_part();
    words = words_for_other_devices(words, spare_plans_->found(devices), cluster_of(devices));
  }
  // Of two devices that do not reach each other, while both reach this one.
  if (value_of(words, "--stall-timeout").empty()) {
    words.insert(words.end(), {"--stall-timeout", "10"});
  }
  words.insert(words.begin(), request_.agents.program);
  return words;
}

// Partitions and profiles that were made here: all ranks read them.
json SupervisedRun::files_named_in(const std::vector<std::string>& words) const {
  const std::filesystem::path folder = StateFolder::of_run(record_.run_number);
  json files = json::object();
  for (const char* option : {"--partition", "--cluster"}) {
    const std::filesystem::path file = value_of(words, option);
    if (file.parent_path() == folder) {
      std::ifstream content(file);
      files[file.filename().string()] =
          std::string(std::istreambuf_iterator<char>(content), std::istreambuf_iterator<char>());
    }
  }
  return files;
}

void SupervisedRun::start_world() {
  pausing_ = false;
  met_full_disk_ = false;
  full_since_.reset();
  phase_.clear();
  stuck_.clear();
  ++worlds_;
  world_.emplace(worlds_, devices_of_ranks(), now_s());
  const std::vector<std::string> words = words_now();
  const json files = files_named_in(words);
  for (int device = 0; device < roster_.size(); ++device) {
    if (!link(device).is_ready()) {
      continue;
    }
    std::vector<int> ranks;
    for (int rank = 0; rank < world_->size(); ++rank) {
      if (world_->device_of(rank) == device) {
        ranks.push_back(rank);
      }
    }
    link(device).send(ranks.empty() ? json{{"do", "kill"}}
                                    : json{{"do", "start"},
                                           {"world", worlds_},
                                           {"ranks", ranks},
                                           {"size", world_->size()},
                                           {"again", worlds_ > 1 || request_.goes_on ? 1 : 0},
                                           {"files", files},
                                           {"words", words}});
  }
}

// For the loss of each device that may be lost.
void SupervisedRun::plan_ahead() {
  constexpr Index kSettled = 3;  // steps
  if (world_ && world_->steps_done() == kSettled) {
    const std::vector<int> all = roster_.taking_part();
    for (const int lost : all) {
      std::vector<int> left = all;
      left.erase(std::find(left.begin(), left.end(), lost));
      if (link(lost).is_here() || left.empty()) {
        continue;
      }
      int ranks = 0;
      for (const int device : left) {
        ranks += link(device).host().ranks;
      }
      std::vector<std::string> words = words_to_plan(record_.words,
                                                     request_.model,
                                                     ranks,
                                                     cluster_of(left),
                                                     spare_plans_->file_of(left).string());
      words.insert(words.begin(), request_.agents.program);
      spare_plans_->want(left, words);
    }
  }
  spare_plans_->look();
}

void SupervisedRun::end_agents(bool remove) {
  constexpr double kLongest_s = 5;
  for (AgentLink& agent : agents_) {
    agent.send(json{{"do", "end"}, {"remove", remove ? 1 : 0}});
  }
  const double begun_s = now_s();
  const auto is_left = [](AgentLink& agent) { return agent.is_ready() && !agent.is_over(); };
  while (now_s() < begun_s + kLongest_s && std::any_of(agents_.begin(), agents_.end(), is_left)) {
    wait();
    for (AgentLink& agent : agents_) {
      (void)agent.receive();
    }
  }
}

void SupervisedRun::write_record() const {
  try {
    write_atomically(std::filesystem::path(record_.run_folder) / kRecordName,
                     to_json(record_).dump(1) + "\n");
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
