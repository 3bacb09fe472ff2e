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
#include "engine/supervisor/run_record.h"

namespace tessera::engine {

struct SupervisorRequest {
  SupervisorRecord record;  // of the run; without a number it is a new one
  AgentStart agents;
  std::string version;      // of this program: that of the agents has to be the same
  double silence_s = 0;     // after which a device or rank counts as lost; 0: the usual
  bool goes_on = false;     // the run was begun by an earlier supervisor
  bool takes_over = false;  // that one is not heard of any more
  bool alone = false;       // goes on with whatever devices are there
  // A line about what happens, without its end.
  std::function<void(const std::string& line)> say;
};

// Returns the exit code: 0 where training ended well, that of the ranks where they ended by
// themselves with another, 75 where there is no going on. Throws InputError before any rank was
// started: this machine is not among the hosts, a device cannot be reached or has another program.
[[nodiscard]] int run_supervised(const SupervisorRequest& request);

}  // namespace tessera::engine
