// `tessera agent`, which `tessera run` starts on each device: not for people, so it is not in the
// help.

#pragma once

namespace tessera::engine {

[[nodiscard]] bool is_agent(int argc, char** argv);

// Returns the exit code.
[[nodiscard]] int run_agent_command(int argc, char** argv);

}  // namespace tessera::engine
