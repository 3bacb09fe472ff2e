// The subcommands that train: train and choose.

#pragma once

#include <CLI/CLI.hpp>

#include "engine/cli/commands.h"

namespace tessera::engine {

void add_train(CLI::App& program, TrainCommand& command);
void add_choose(CLI::App& program, ChooseCommand& command);

}  // namespace tessera::engine
