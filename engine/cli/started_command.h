// How this process was started, and how a user goes on with its training.

#pragma once

#include <string>
#include <vector>

namespace tessera::engine {

// The command that was typed, as one line for a shell: with mpiexec and its options, where that
// runs on this machine; under `tessera run` as that was begun.
[[nodiscard]] std::string started_line();

// The name of this program, as it was typed, for a shell.
[[nodiscard]] std::string started_program();

// What to type to go on with a run: from a checkpoint, with what was typed before; where a
// supervisor has started the ranks, which finds all else in the run's folder.
[[nodiscard]] std::string advice_to_resume(const std::string& checkpoint);
[[nodiscard]] std::string command_to_continue(const std::string& run);

}  // namespace tessera::engine
