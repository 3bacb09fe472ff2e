// Options that say how to cut a network, and how what the parts learn is put together.

#pragma once

#include <CLI/CLI.hpp>

#include "engine/cli/commands.h"

namespace tessera::engine {

// What --partition auto may use of each device.
CLI::Option* add_memory_limit(CLI::App& app, PartitionChoice& choice, const char* help);

// Reader, kernels and scratch memory. `plans`: kernels may be measured, too.
void add_execution(CLI::App& app, PartitionChoice& choice, bool plans);

// All of how one replica is cut, with add_execution().
void add_partition(CLI::App& app,
                   PartitionChoice& choice,
                   const char* default_grid = "as square as possible",
                   bool plans = false);

void add_gradient_precision(CLI::App& app, PartitionChoice& choice);
CLI::Option* add_replicas(CLI::App& app, PartitionChoice& choice);
CLI::Option* add_sync(CLI::App& app, PartitionChoice& choice);

}  // namespace tessera::engine
