// The subcommands of the program: a row says what one is called, which options it has, what runs
// it, and whether that takes all ranks or one.

#pragma once

#include <CLI/CLI.hpp>
#include <any>
#include <functional>
#include <map>
#include <string>
#include <typeindex>
#include <vector>

#include "engine/cli/commands.h"

namespace tessera::engine {

// What the options of all subcommands are read into.
struct Commands {
  std::map<std::type_index, std::any> values;  // a PlanCommand, ...
  Index stall_timeout_s = 0;  // of other ranks, of a command that is watched; 0: the usual one

  template <class Command>
  [[nodiscard]] const Command& of() const {
    return std::any_cast<const Command&>(values.at(typeid(Command)));
  }
};

// Those that run return the exit code. A row with both takes one rank for a dry run.
struct CommandRow {
  std::string name;
  std::string purpose;  // a line of the help
  std::function<void(CLI::App&, Commands&)> add_options;
  std::function<int(const Commands&)> run_alone = {};
  std::function<int(const Commands&, const Communicator&)> run_together = {};
  bool watched = false;  // by a Watchdog; others have none or start their own
};

// In the order of the help.
[[nodiscard]] const std::vector<CommandRow>& command_rows();

// Adds the subcommands to `program`; parsing fills `commands`, which must outlive it.
void add_commands(CLI::App& program, Commands& commands);

}  // namespace tessera::engine
