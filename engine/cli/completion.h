// What shells complete, made of the same definitions as the help: commands, their options, the
// words that an option takes, and files.

#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace tessera::engine {

// Scripts for the program as set_up_program made it.
[[nodiscard]] std::string bash_completion(const CLI::App& program);
[[nodiscard]] std::string fish_completion(const CLI::App& program);
[[nodiscard]] std::string zsh_completion(const CLI::App& program);

}  // namespace tessera::engine
