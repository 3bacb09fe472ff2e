// The subcommands of the program: a row says what one is called, which options it has, what runs
// it, and whether that takes all ranks or one.

#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "engine/cli/commands.h"

namespace tessera::engine {

// What the options of all subcommands are read into.
struct Commands {
  std::tuple<TrainCommand,
             ChooseCommand,
             RunCommand,
             DoctorCommand,
             DeployCommand,
             EvalCommand,
             PredictCommand,
             PlanCommand,
             TimeCommand,
             ProbeCommand,
             TopCommand,
             CheckCommand,
             GradientsCommand,
             ConvertCommand,
             ReportCommand,
             CheckDataCommand,
             AnchorsCommand,
             MakeDetectionSetCommand,
             MapCommand,
             BalanceCommand>
      values;
  Index stall_timeout_s = 0;  // of other ranks, of a command that is watched; 0: the usual one

  template <class Command>
  [[nodiscard]] const Command& of() const {
    return std::get<Command>(values);
  }
};

// Those that run return the exit code. A row without `run_alone` takes all ranks, one with both
// takes one where it is only asked to predict.
struct CommandRow {
  std::string name;
  std::string purpose;  // a line of the help
  std::function<void(CLI::App&, Commands&)> add_options;
  std::function<int(const Commands&)> run_alone = {};
  std::function<int(const Commands&, const Communicator&)> run_together = {};
  bool watched = false;   // by a Watchdog; others have none or start their own
  bool computes = false;  // alone: with as many threads as it is told

  [[nodiscard]] bool is_alone(const Commands& commands) const {
    return !run_together || (run_alone && commands.of<ChooseCommand>().dry_run);
  }
};

// In the order of the help.
[[nodiscard]] const std::vector<CommandRow>& command_rows();

// Adds the subcommands to `program`; parsing fills `commands`, which must outlive it.
void add_commands(CLI::App& program, Commands& commands);

}  // namespace tessera::engine
