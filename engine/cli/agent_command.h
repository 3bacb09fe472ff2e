// `tessera agent`, which `tessera run` starts on each device, and `tessera agent --examine`, which
// `tessera doctor` does: not for people, so it is not in the help.

#pragma once

namespace tessera::engine {

[[nodiscard]] bool is_agent(int argc, char** argv);

// Returns the exit code.
[[nodiscard]] int run_agent_command(int argc, char** argv);

}  // namespace tessera::engine
