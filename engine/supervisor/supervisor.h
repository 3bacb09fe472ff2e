// A run that goes on by itself: starts the ranks of a training run on its devices, and after a
// fault those that are left, which go on from the state of the last finished step (see recovery).
//
// Nothing listens on the network: agents are reached by a remote shell, and ranks find each other
// by what their agents relay. MPI's own launcher is not used.

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/supervisor/agent_link.h"
#include "engine/supervisor/host_list.h"

namespace tessera::engine {

struct SupervisorRequest {
  std::vector<Host> hosts;         // this machine among them
  std::vector<std::string> words;  // "train" or "choose" and what follows
  AgentStart agents;
  std::string version;     // of this program: that of the agents has to be the same
  std::string run_number;  // of a run that goes on; empty: a new one
  std::string run_folder;  // of the training run
  double silence_s = 0;    // after which a device or rank counts as lost; 0: the usual
  bool goes_on = false;    // the run was begun by an earlier supervisor
  // A line about what happens, without its end.
  std::function<void(const std::string& line)> say;
};

// Returns the exit code: 0 where training ended well, that of the ranks where they ended by
// themselves with another, 75 where there is no going on. Throws InputError before anything was
// started: this machine is not among the hosts, a device cannot be reached or has another program.
[[nodiscard]] int run_supervised(const SupervisorRequest& request);

// What a run folder says of the run's supervisor, for a later one; throws InputError.
struct SupervisorRecord {
  std::string run_number;
  std::vector<std::string> words;
  std::vector<Host> hosts;
  std::string folder;  // that the run was started in
  std::string remote_shell;
};
[[nodiscard]] SupervisorRecord read_supervisor_record(const std::string& run_folder);

}  // namespace tessera::engine
