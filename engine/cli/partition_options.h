// Options that say how to cut a network, and how what the parts learn is put together.

#pragma once

#include <CLI/CLI.hpp>

#include "engine/cli/commands.h"
#include "engine/cli/help.h"

namespace tessera::engine {

// What --partition auto may use of each device.
CLI::Option* add_memory_limit(CLI::App& app, PartitionRequest& request, const char* help);

// Reader, kernels and scratch memory. `measures_kernels`: where to say that kernels are to be
// timed; null: they cannot be.
void add_execution(CLI::App& app, PartitionRequest& request, bool* measures_kernels = nullptr);

// All of how one replica is cut, with add_execution().
void add_partition(CLI::App& app,
                   PartitionRequest& request,
                   const char* default_grid = "as square as possible",
                   bool* measures_kernels = nullptr);

void add_gradient_precision(CLI::App& app, PartitionRequest& request);
void add_replicas(CLI::App& app, PartitionRequest& request, const char* group = kPartitionGroup);

// Replicas, how they are synchronised, and how precise what they exchange is.
void add_synchronisation(CLI::App& app,
                         PartitionRequest& request,
                         const char* group = kPartitionGroup);

}  // namespace tessera::engine
