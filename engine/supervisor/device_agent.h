// What runs on each device for a supervisor: it takes what that says, has the ranks of this device,
// and takes over where it is gone for long.

#pragma once

#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <unistd.h>
#include <utility>

#include "engine/processes/child_process.h"
#include "engine/processes/line_stream.h"
#include "engine/supervisor/agent.h"
#include "engine/supervisor/folder_mirror.h"
#include "engine/supervisor/leadership.h"
#include "engine/supervisor/protocol.h"
#include "engine/supervisor/run_record.h"
#include "engine/supervisor/state_folder.h"
#include "engine/supervisor/supervision.h"
#include "engine/system/clock.h"

namespace tessera::engine {

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

  // See run_agent().
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

}  // namespace tessera::engine
