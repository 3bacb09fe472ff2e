// Lets a search choose the partition: what --partition auto, --cluster, --memory-limit and
// --objective mean.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/cli/commands.h"
#include "partitioner/search/search.h"

namespace tessera::engine {

// What is to be computed by a partition, beside the network.
struct Workload {
  std::string model;  // what the user calls it
  Index batch = 1;    // images of one pass
  Index passes = 1;   // of one step
  bool training = true;
  bool adam = false;
  // What pictures take on ranks that read, where that is known.
  Index decoding_bytes = partitioner::kUsualDecodingBytes;
  Index data_bytes = 0;
};

// The profile of `ranks` devices: from --cluster, or the file beside the host file that
// HYDRA_HOST_FILE names, "HOSTFILE.cluster.toml". Without either, equal devices: then it says so
// on standard error.
[[nodiscard]] partitioner::ClusterProfile described_cluster(const PartitionChoice& choice,
                                                            int ranks);

// The number of devices in the profile that the choice leads to, if there is one.
[[nodiscard]] std::optional<int> profiled_devices(const PartitionChoice& choice);

// What a process takes on each of the ranks, and devices beyond, without a network, by that
// profile; empty where there is none, or none of so many devices.
[[nodiscard]] std::vector<Index> profiled_program_bytes(const PartitionChoice& choice, int ranks);

// What a search has to know of the workload and the choice. `network` must outlive it.
[[nodiscard]] partitioner::SearchOptions search_options(const partitioner::Network& network,
                                                        const PartitionChoice& choice,
                                                        const Workload& workload,
                                                        int ranks);

// The same, to predict a step of a partition that there is.
[[nodiscard]] partitioner::SearchOptions prediction_options(
    const partitioner::Network& network,
    const PartitionChoice& choice,
    const Workload& workload,
    const partitioner::Partition& partition);

// Throws InputError that names a device of which nothing is known.
void expect_known_powers(const partitioner::ClusterProfile& cluster);

// The best of what a search finds for the cluster and of what it is compared with: the only
// candidate of the result; none where nothing fits.
[[nodiscard]] partitioner::SearchResult search_with_baselines(
    const partitioner::Network& network,
    const partitioner::ClusterProfile& cluster,
    const PartitionChoice& choice,
    const Workload& workload);

// The best partition that a search finds for the cluster. Throws InputError where nothing fits.
[[nodiscard]] partitioner::Partition search_automatically(
    const partitioner::Network& network,
    const partitioner::ClusterProfile& cluster,
    const PartitionChoice& choice,
    const Workload& workload);

// Whether this rank will read pictures, where a search is to choose the partition: it leaves the
// reader as it is. Nothing where no search does. Errors are AgreedErrors.
[[nodiscard]] std::optional<bool> reads_before_search(const PartitionChoice& choice,
                                                      const Communicator& communicator);

// The partition of a command that all ranks run together: chosen or, with --partition auto, found
// by rank 0 and sent to all. Errors are AgreedErrors; one is that ranks come to different plans.
[[nodiscard]] partitioner::Partition agreed_partition(const partitioner::Network& network,
                                                      const PartitionChoice& choice,
                                                      const Workload& workload,
                                                      const Communicator& communicator);

}  // namespace tessera::engine
