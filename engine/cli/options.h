// The command line: every subcommand with its options, read into plain values.

#pragma once

#include <CLI/CLI.hpp>

#include "engine/cli/commands.h"

namespace tessera::engine {

struct Commands {
  TrainCommand train;
  ChooseCommand choose;
  RunCommand run;
  DoctorCommand doctor;
  DeployCommand deploy;
  EvalCommand eval;
  CheckDataCommand check_data;
  AnchorsCommand anchors;
  MakeDetectionSetCommand make_detection_set;
  BalanceCommand balance;
  PredictCommand predict;
  PlanCommand plan;
  TimeCommand time;
  ProbeCommand probe;
  TopCommand top;
  CheckCommand check;
  GradientsCommand gradients;
  MapCommand map;
  ConvertCommand convert;
  ReportCommand report;
};

// Adds the subcommands to `program`; parsing fills `commands`, which must outlive it.
void add_commands(CLI::App& program, Commands& commands);

}  // namespace tessera::engine
