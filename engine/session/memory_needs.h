// What a plan takes of the memory of ranks, and whether their machines have it.

#pragma once

#include <string>
#include <vector>

#include "engine/comm/communicator.h"
#include "partitioner/report/plan_report.h"

namespace tessera::engine {

// Scratch that the kernels of a plan take on each rank.
[[nodiscard]] std::vector<Index> workspace_bytes_of_ranks(const partitioner::Network& network,
                                                          const partitioner::Plan& plan,
                                                          bool training);

// What reports of a plan need to know of the model's training.
[[nodiscard]] partitioner::ReportOptions report_options(const std::string& model,
                                                        const partitioner::Network& network,
                                                        const partitioner::Plan& plan,
                                                        bool adam);

// What the machine of this rank has left for programs beside what the plan takes on all ranks
// there, as the kernel estimates it. All ranks call this together.
[[nodiscard]] Index memory_left_by(const partitioner::Network& network,
                                   const partitioner::Plan& plan,
                                   const partitioner::ReportOptions& options,
                                   const Communicator& communicator);

// Throws AgreedError on all ranks where those of one machine together need more memory for training
// than it has, or than their control group leaves. `remedy`: what else would help, if anything.
void expect_memory(const partitioner::Network& network,
                   const partitioner::Plan& plan,
                   const partitioner::ReportOptions& options,
                   const Communicator& communicator,
                   const std::string& remedy = "");

}  // namespace tessera::engine
