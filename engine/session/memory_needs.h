// What a plan takes of the memory of ranks, and whether their machines have it.

#pragma once

#include <string>
#include <vector>

#include "engine/comm/communicator.h"
#include "partitioner/text/plan_report.h"

namespace tessera::engine {

// Scratch that the kernels of a plan take on each rank.
[[nodiscard]] std::vector<Index> workspace_bytes_of_ranks(const partitioner::Network& network,
                                                          const partitioner::Plan& plan,
                                                          bool training);

// What this process will take without a network or data once it trains, judged by what it takes
// now: its code, libraries and MPI, which take more on one system than on another. In whole MiB, so
// that runs of the same program mostly agree. To be called before anything large is allocated, and
// once ranks have exchanged messages, so that their connections have buffers.
[[nodiscard]] Index program_bytes_in_training();

// The same of each rank, for ReportOptions. All ranks call this together.
[[nodiscard]] std::vector<Index> program_bytes_of_ranks(const Communicator& communicator);

// What reports of a plan need to know of the model's training. Of the program itself the usual
// bytes are assumed, as for a plan without ranks.
[[nodiscard]] partitioner::ReportOptions report_options(const std::string& model,
                                                        const partitioner::Network& network,
                                                        const partitioner::Plan& plan,
                                                        const partitioner::TrainedArrays& trained);

// A number of each rank, summed over those on the machine of this one. All ranks call this
// together.
[[nodiscard]] Index sum_on_this_machine(Index mine, const Communicator& communicator);

// What the machine of this rank has left for programs beside what is planned for all ranks there,
// as the kernel estimates it. All ranks call this together.
[[nodiscard]] Index memory_left_by(const std::vector<partitioner::MemoryUse>& planned,
                                   const Communicator& communicator);

// Throws AgreedError on all ranks where those of one machine together need more memory for training
// than it has, or than their control group leaves. `model`: what the user calls it; `remedy`: what
// else would help, if anything.
void expect_memory(const std::vector<partitioner::MemoryUse>& planned,
                   const std::string& model,
                   const Communicator& communicator,
                   const std::string& remedy = "");

}  // namespace tessera::engine
