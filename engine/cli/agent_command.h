// `tessera agent`, which `tessera run` starts on each device, `tessera agent --spare REQUEST OUT
// DEVICE...`, by which it searches partitions ahead of time, and `tessera agent --examine`, which
// `tessera doctor` starts: not for people, so it is not in the help.

#pragma once

namespace tessera::engine {

[[nodiscard]] bool is_agent(int argc, char** argv);

// Returns the exit code.
[[nodiscard]] int run_agent_command(int argc, char** argv);

}  // namespace tessera::engine
