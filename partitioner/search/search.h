// Finds the fastest partition of a network for a cluster, the one of least memory, the fastest
// under a limit of memory, or the one that takes the least energy.
//
// Dynamic programming over layers. A state is where the last group ended and who owns which cells
// of each map that is still to be read; a step appends a group of layers under one of the
// arrangements of search_space.h. Its cost is the group's own (partitioner/cost/cost_model.h) and
// the exchange of the maps that it reads, so the time of a partition is the sum over its steps:
// under that model the search is exact. States that cannot beat the best partition known are
// dropped: what is left to do costs at least what the cheapest groups would without any exchange.
//
// Among many devices most choices are too expensive for a few of the ranks already (shortlist.h):
// only those that are left are worked out for all ranks. So nothing is lost.
//
// Under a limit of memory, what groups add to the device that uses the most has a price in seconds,
// which is raised until something fits and lowered again until hardly anything does (Lagrangian
// relaxation). Ways that take more than the limit in the backward pass of some group are dropped.
// Both count about what is taken, so all partitions that are found are checked with
// planned_memory_of_ranks(). Two lower limits of a fixed ladder are searched as well, and where
// nothing is found, what the search for the smallest partition met, which starts from what the
// fastest takes and not from the limits. In the end all partitions that are faster than the one
// found are looked at, where there are few enough; `effort.complete` says whether there were.
//
// The best few by the model are simulated, and the best few if a quarter, half, three quarters or
// all of what may travel while ranks compute costs nothing; the fastest of these is the result.
// Where that order differs from the model's, only those few are compared.
//
// For energy, what the devices compute has a price in joules, and time one of the power that all
// take while they wait. Devices that a partition leaves without work are taken to be off, so the
// fewer take part the less time costs: the search is run for the idle power of the fastest 1, 2,
// ... of them, and of the 1, 2, ... that take the least energy for the same work, and all that it
// finds is judged by partitioner/cost/step_energy.h.
//
// A new dimension of the decision (an algorithm for gradient reduction) that concerns one group is
// a further variant of its choices, with its own cost and bytes; see add_variants() in
// group_choices.cpp, where reductions to owners and recomputation are two.

#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "partitioner/cost/cost_model.h"
#include "partitioner/cost/step_energy.h"
#include "partitioner/memory/memory.h"
#include "partitioner/partition/partition.h"
#include "partitioner/search/objective.h"

namespace tessera::partitioner {

// Bytes of scratch that kernels want: the engine knows. None where nobody can tell.
struct WorkspaceNeeds {
  std::function<std::vector<Index>(const Plan&)> per_rank;
  // The need of one layer on a tile, at least: a plan needs no less than any of its layers.
  std::function<Index(int layer, const ConvolutionKernels& kernels, const Tile& tile)> per_layer;
  // The kernels of a plan, those that take more scratch than is allowed replaced. None: no limit.
  std::function<std::vector<ConvolutionKernels>(const Plan&)> limited_kernels;
};

struct SearchOptions {
  Objective objective = Objective::Time;
  Index batch = 1;  // images of one pass
  CostOptions cost;
  std::vector<ConvolutionKernels> kernels;  // by layer
  Reader reader;
  GradientReduction gradient_reduction = {};
  bool chooses_optimizer = false;  // whether its state is replicated; else as said there
  bool counts_memory = true;       // false: devices have enough, and nobody wants to know
  MemoryOptions memory;            // what to count; workspace and program are those of each rank
  WorkspaceNeeds workspace;
  // For every device. Without it, each device's memory is the limit.
  std::optional<Index> memory_limit_bytes;
  int longest_group = 8;            // layers
  int candidates = 5;               // that are simulated
  std::size_t most_states = 20000;  // at one layer
};

struct Candidate {
  Partition partition;
  double modelled_s = 0;
  // With few devices; with many a simulation takes longer than the search.
  std::optional<double> simulated_s;
  std::vector<MemoryUse> memory;     // [rank]; empty where it is not counted
  std::optional<StepEnergy> energy;  // nothing where the power of a device is unknown

  [[nodiscard]] double predicted_s() const { return simulated_s.value_or(modelled_s); }
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

// What is predicted for a partition that somebody else chose.
[[nodiscard]] Candidate evaluated(const Network& network,
                                  const ClusterProfile& cluster,
                                  const SearchOptions& options,
                                  const Partition& partition);

// The memory of each rank as the search counts it: with the workspace that `options` tells of, and
// what the devices take without a network.
[[nodiscard]] std::vector<MemoryUse> searched_memory(const Network& network,
                                                     const ClusterProfile& cluster,
                                                     const SearchOptions& options,
                                                     const Partition& partition);

// The candidate, or the same with the optimizer's state replicated: where options let it choose,
// the better of these that fits. Both compute the same; what differs is what second copies of each
// step's state take (CostOptions::kept), arithmetic and memory.
[[nodiscard]] Candidate with_best_optimizer(const Network& network,
                                            const ClusterProfile& cluster,
                                            const SearchOptions& options,
                                            Candidate candidate);

// The limit of each device: its memory, or what is asked for if that is less.
[[nodiscard]] std::vector<Index> memory_limits(const ClusterProfile& cluster,
                                               const SearchOptions& options);

// What a search for this objective would have small. Objectives of energy require that all powers
// are known.
[[nodiscard]] double objective_value(Objective objective, const Candidate& candidate);

// Objectives of energy require that the powers of all devices are known.
[[nodiscard]] SearchResult search_partition(const Network& network,
                                            const ClusterProfile& cluster,
                                            const SearchOptions& options);

}  // namespace tessera::partitioner
