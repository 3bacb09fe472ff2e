// How this program ends where it cannot go on as usual: the library leaves that to the program.

#pragma once

#include "engine/comm/watchdog.h"

namespace tessera::engine {

// Ends all ranks at once, for errors that one rank alone met and the others cannot know of.
[[noreturn]] void end_all_ranks(int exit_code);

// Ends this process with kOthersMissing after `report` was called, on the rank that reports for
// all, or after that one has had the time to find out, and after its deputy, which reports where
// that one has not ended all by then. `launcher` is the process of mpiexec, as launcher_process()
// said when the run began; 0: none.
[[noreturn]] void end_stalled(const Stall& stall,
                              int launcher,
                              const std::function<void()>& report);

}  // namespace tessera::engine
