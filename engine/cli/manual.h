// Manual pages, made of the same definitions as the help: tessera(1), and a page for each command,
// tessera-train(1), in the macros of man(7).

#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace tessera::engine {

// The page of the program as set_up_program made it; its date is written YYYY-MM-DD.
[[nodiscard]] std::string program_manual(const CLI::App& program, const std::string& date);

// The page of one of the program's commands, with the options about cutting on it.
[[nodiscard]] std::string command_manual(const CLI::App& program,
                                         const CLI::App& command,
                                         const std::string& date);

}  // namespace tessera::engine
