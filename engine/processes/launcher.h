// The mpiexec that started this process, where it runs on the same machine, as /proc shows it.

#pragma once

#include <string>
#include <vector>

namespace tessera::engine {

// Its process number; 0: there is none, or it runs elsewhere.
[[nodiscard]] int launcher_process();

// The command line of a process, empty where it cannot be seen.
[[nodiscard]] std::vector<std::string> words_of_process(int process);

// Sees to it that the launcher ends once this process has. It waits for all that it started, for
// ever where a machine is out of reach. A process that this leaves behind gives it some seconds,
// then ends what it has started (ssh, its own helpers), then the launcher itself.
void end_launcher_after(int launcher);

}  // namespace tessera::engine
