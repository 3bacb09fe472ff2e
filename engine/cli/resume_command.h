// What to type to go on with a training run that was stopped: the command line of this process and
// of the mpiexec that started it, with --resume.

#pragma once

#include <string>
#include <vector>

namespace tessera::engine {

using Words = std::vector<std::string>;

// How this process was started: mpiexec and its options, which may be unknown, and the program with
// its arguments; under `tessera run` as that was begun.
struct CommandWords {
  Words launcher;  // empty: without mpiexec, or it is not seen from here
  Words program;
  Words supervisor;  // "run", ..., "--", between the program's name and its arguments; or empty
};

// As the system says it, and a supervisor. Where mpiexec runs on another machine the launcher is
// not seen.
[[nodiscard]] CommandWords started_command();

// The same as one line for a shell.
[[nodiscard]] std::string started_line(const CommandWords& started);

// Whether each rank has data of its own, which goes with it.
[[nodiscard]] bool uses_data_map(const CommandWords& started);

// One line for a shell that goes on from the checkpoint with as many ranks as before.
[[nodiscard]] std::string command_to_resume(const CommandWords& started,
                                            int ranks,
                                            const std::string& checkpoint);

// The same where a supervisor has started the ranks: it finds all else in the run's folder.
[[nodiscard]] std::string command_to_continue(const std::string& run);

// The same as the first into another run folder.
[[nodiscard]] std::string command_to_resume_in(const std::string& run,
                                               const CommandWords& started,
                                               int ranks,
                                               const std::string& checkpoint);

// The same for other devices, a name for each rank: what said how to cut the network
// for the devices of before is left out.
[[nodiscard]] std::string command_to_resume_on(const Words& hosts,
                                               const CommandWords& started,
                                               const std::string& checkpoint);

}  // namespace tessera::engine
