// The command line: reads it, runs a command, turns errors into one line and an exit code.

#pragma once

namespace tessera::engine {

// 0: done. 1: a check failed, or a fault of the program's own. 2: something the user gave cannot be
// used.
[[nodiscard]] int run_program(int argc, char** argv);

}  // namespace tessera::engine
