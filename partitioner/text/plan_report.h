// A plan in words and numbers: a table for people, JSON for programs, a line for the head of a
// training run. Bytes and multiply-adds are those of one pass over `plan.batch` images;
// multiply-adds are the forward pass's.

#pragma once

#include <string>
#include <vector>

#include "partitioner/memory/memory.h"
#include "partitioner/partition/partition.h"
#include "partitioner/plan/plan.h"

namespace tessera::partitioner {

struct ReportOptions {
  std::string model;  // what the user calls it
  MemoryOptions memory;
  // Scratch, and the program itself, of each rank where they are known; else those of `memory`.
  std::vector<Index> workspace_bytes;
  std::vector<Index> program_bytes;
  bool tile_statistics = false;  // each of several tiles takes batch statistics of its own
};

// What is cut how, and what a step computes and sends: a line for each, at most 100 columns.
[[nodiscard]] std::string plan_overview(const Network& network,
                                        const Plan& plan,
                                        const Partition& partition,
                                        const ReportOptions& options);

// The overview and, below it, every group, region and kind of memory. At most 100 columns. With
// more than eight ranks, tables show those with the least, the median and the most work or memory.
[[nodiscard]] std::string plan_table(const Network& network,
                                     const Plan& plan,
                                     const Partition& partition,
                                     const ReportOptions& options);

// One JSON object on one line. Ranges are [begin, end).
[[nodiscard]] std::string plan_json(const Network& network,
                                    const Plan& plan,
                                    const ReportOptions& options);

// One line without a line break.
[[nodiscard]] std::string plan_summary(const Network& network,
                                       const Plan& plan,
                                       const Partition& partition,
                                       const ReportOptions& options);

// What each rank is planned to use.
[[nodiscard]] std::vector<MemoryUse> planned_memory_of_ranks(const Network& network,
                                                             const Plan& plan,
                                                             const ReportOptions& options);

}  // namespace tessera::partitioner
