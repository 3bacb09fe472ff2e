// What a supervisor starts on each device: it starts the ranks there, relays what they say, and
// ends them, whatever happens: when it is told to, when the supervisor has been silent, and when
// itself is killed. It has the state that the ranks keep, for as long as the run may go on.

#pragma once

#include <string>

namespace tessera::engine {

struct AgentOptions {
  std::string version;  // of this program, compared with the supervisor's
  int output = -1;      // descriptor for what ranks print; -1: with their errors
};

// Serves the supervisor that is at standard input and output, until it is told to end, or has been
// away for so long that the run will not go on. Returns the exit code.
[[nodiscard]] int run_agent(const AgentOptions& options);

}  // namespace tessera::engine
