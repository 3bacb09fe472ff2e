// What is asked for when a network is to be cut: a partition file, a shorthand such as a grid, or
// what a search is to look for. It is read once, from words or by a program; what it means for a
// number of ranks and a network is found where they are known.

#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "partitioner/partition/compression.h"
#include "partitioner/partition/kernels.h"
#include "partitioner/partition/partition.h"
#include "partitioner/partition/replicas.h"
#include "partitioner/search/objective.h"

namespace tessera::partitioner {

// First and last layer of each group.
using GroupRanges = std::vector<std::pair<int, int>>;

// Shorthand for how to cut; what is left out is chosen by make_partition().
struct CutRequest {
  std::optional<std::pair<Index, Index>> grid = {};  // rows, columns
  GroupRanges groups = {};
  GroupRanges recompute = {};
  bool recompute_all = false;
  int data_parallel_from = -1;
  int filter_parallel_from = -1;
  std::optional<int> replicas = {};
  std::optional<Synchronisation> sync = {};
  friend bool operator==(const CutRequest&, const CutRequest&) = default;
};

struct PartitionRequest {
  // A search chooses; else a file, where one is given; else `cut`.
  bool automatic = false;
  std::string file = {};
  std::string found = {};  // a file that has what that search has found already; empty: none has

  // A profile of the devices; empty: the one beside the host file, see engine/session/planning.h.
  std::string cluster = {};
  std::optional<Index> memory_limit_bytes = {};  // of each device
  std::optional<Objective> objective = {};

  CutRequest cut = {};
  std::optional<Reader> reader = {};       // nothing: as the file says, else every rank
  std::optional<KernelRule> kernels = {};  // nothing: as the file says, else `default_kernels`
  KernelRule default_kernels = KernelRule::Usual;
  std::optional<Index> workspace_bytes = {};  // the most scratch that kernels may take
  std::optional<Compression> gradient_precision = {};

  // Whether anything is said about how to cut, other than into groups.
  [[nodiscard]] bool says_how_to_cut() const {
    return automatic || !file.empty() || cut.grid || cut.filter_parallel_from >= 0 ||
           cut.data_parallel_from >= 0;
  }
  friend bool operator==(const PartitionRequest&, const PartitionRequest&) = default;
};

// The same with direct kernels unless asked otherwise, for numbers that are to be compared.
[[nodiscard]] PartitionRequest comparable_request();

// "every" or the number of a rank. Throws InputError that names --reader.
[[nodiscard]] Reader parse_reader(const std::string& text);

// The reader among so many ranks. Throws InputError where there is no such rank.
[[nodiscard]] Reader requested_reader(const PartitionRequest& request, int ranks);

// Throws InputError where synchronisation is asked for, but not how many replicas.
[[nodiscard]] Replicas requested_replicas(const PartitionRequest& request);

// The same for one of the replicas.
[[nodiscard]] PartitionRequest request_for_one_replica(PartitionRequest request);

// The partition that is asked for without a search, or a default: one tile for one rank, a grid as
// square as can be for more; for each replica, where there are several. Throws InputError where it
// does not fit network, batch or ranks. Kernels may take more scratch than the request allows.
[[nodiscard]] Partition requested_partition(const Network& network,
                                            const PartitionRequest& request,
                                            int ranks,
                                            Index batch);

}  // namespace tessera::partitioner
