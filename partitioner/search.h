// Finds the fastest partition of a network for a cluster, the one of least memory, or the fastest
// under a limit of memory.
//
// Dynamic programming over layers. A state is where the last group ended and who owns which cells
// of each map that is still to be read; a step appends a group of layers under one of the
// arrangements of search_space.h. Its cost is the group's own (cost_model.h) and the exchange of
// the maps that it reads, so the time of a partition is the sum over its steps: under that model
// the search is exact. States that cannot beat the best partition known are dropped: what is left
// to do costs at least what the cheapest groups would without any exchange.
//
// With a limit of memory a state also has the buffers of maps still to be read, and keeps every way
// to get there that no other beats in time and in the bytes of every rank. Bytes add up exactly but
// for the gradients' arena, which counts as its largest layer: less than what packing them takes.
// So partitions that are found are checked with planned_memory(), and where none passes the search
// is repeated with less. What is found is then made sure of by looking for a faster one among all
// ways, beaten or not; `effort.complete` says whether there were few enough of them.
//
// The best few by the model are simulated; the fastest of these is the result. Where that order
// differs from the model's, only those few are compared.
//
// A new dimension of the decision (recomputation, an algorithm for gradient sums, optimizer state
// whole or sharded) that concerns one group is a further variant of its choices, with its own cost
// and bytes; see add_variants() in group_choices.cpp, where backward collapse points are one.

#pragma once

#include <optional>
#include <vector>

#include "partitioner/cost_model.h"
#include "partitioner/memory.h"
#include "partitioner/partition.h"

namespace partitioner {

enum class Objective { Time, Memory };

struct SearchOptions {
  Objective objective = Objective::Time;
  Index batch = 1;  // images of one pass
  CostOptions cost;
  std::vector<ConvolutionKernels> kernels;  // by layer
  int reader = kEveryRank;
  MemoryOptions memory;  // what to count
  // Of every device. Without it, each device's memory is the limit.
  std::optional<Index> memory_limit_bytes;
  int longest_group = 8;            // layers
  int candidates = 5;               // that are simulated
  std::size_t most_ways = 64;       // to one state under a limit of memory
  std::size_t most_states = 20000;  // at one layer
};

struct Candidate {
  Partition partition;
  double modelled_s = 0;
  double simulated_s = 0;
  std::vector<MemoryUse> memory;  // [rank]

  [[nodiscard]] Index most_bytes() const;  // of any rank
};

struct SearchEffort {
  Index groups = 0;  // choices that were costed
  Index states = 0;
  Index steps = 0;       // from one state to another
  bool complete = true;  // no way was dropped only because there were too many
};

struct SearchResult {
  std::vector<Candidate> candidates;  // that fit, the best first; empty where nothing does
  std::optional<Candidate> smallest;  // where nothing fits: the least memory that was found
  SearchEffort effort;
};

[[nodiscard]] SearchResult search_partition(const Network& network,
                                            const ClusterProfile& cluster,
                                            const SearchOptions& options);

}  // namespace partitioner
