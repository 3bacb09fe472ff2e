// What a rank was started with. Ranks of one run may be started on other machines, and by mistake
// with other options or another version of the program: they find out before they do anything
// together.

#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "engine/cli/help.h"
#include "engine/comm/communicator.h"

namespace tessera::engine {

struct CommandLine {
  std::vector<std::string> words;  // "check", "MODEL x.cfg", "--grid 2x2": as it was understood
  std::string answer;   // help or version, where one was asked for; then print it and exit
  std::string problem;  // what is wrong; empty: nothing
};

// Fills what `program` was told to fill.
[[nodiscard]] CommandLine read_command_line(CLI::App& program,
                                            const HelpPages& help,
                                            int argc,
                                            char** argv);

// Throws AgreedError on all ranks where one has a problem, other words than rank 0 or another
// program. All ranks call this together.
void expect_same_start(const CommandLine& mine, const Communicator& communicator);

}  // namespace tessera::engine
