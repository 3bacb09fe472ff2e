// From a request to the partition that all ranks train by: the devices that there are, what a
// search has to know of the work, and the search itself.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/session/session_observer.h"
#include "partitioner/search/partition_request.h"
#include "partitioner/search/search.h"

namespace tessera::engine {

using partitioner::PartitionRequest;

// What is to be computed by a partition, beside the network.
struct Workload {
  std::string model;  // what the user calls it
  Index batch = 1;    // images of one pass
  Index passes = 1;   // of one step
  bool training = true;
  partitioner::TrainedArrays trained = {};
  partitioner::StateKeeping kept = {};  // see engine/recovery
  // What pictures take on ranks that read, where that is known.
  Index decoding_bytes = partitioner::kUsualDecodingBytes;
  Index data_bytes = 0;
  Index judging_bytes = 0;  // what a test keeps on rank 0
};

// The profile of `ranks` devices: the one that is asked for, or the file beside the host file that
// HYDRA_HOST_FILE names, "HOSTFILE.cluster.toml". Without either, equal devices, with a warning.
// Throws InputError where it describes too few.
[[nodiscard]] partitioner::ClusterProfile described_cluster(const PartitionRequest& request,
                                                            int ranks,
                                                            const SessionObserver& observer);

// The number of devices in the profile that there is, if there is one.
[[nodiscard]] std::optional<int> profiled_devices(const PartitionRequest& request);

// The profile of so many devices, where there is one that has them; nothing else.
[[nodiscard]] std::optional<partitioner::ClusterProfile> profiled_cluster(
    const PartitionRequest& request, int ranks);

// What a process takes on each of the ranks, and devices beyond, without a network, by that
// profile; empty where there is none, or none of so many devices.
[[nodiscard]] std::vector<Index> profiled_program_bytes(const PartitionRequest& request, int ranks);

// What a search has to know of the workload and the request. `network` must outlive it. Throws
// InputError where there is no such reader among `ranks`.
[[nodiscard]] partitioner::SearchOptions search_options(const partitioner::Network& network,
                                                        const PartitionRequest& request,
                                                        const Workload& workload,
                                                        int ranks);

// The same, to predict a step of a partition that there is.
[[nodiscard]] partitioner::SearchOptions prediction_options(
    const partitioner::Network& network,
    const PartitionRequest& request,
    const Workload& workload,
    const partitioner::Partition& partition);

// The best partition that a search finds for the cluster. Throws InputError where nothing fits.
[[nodiscard]] partitioner::Partition search_automatically(
    const partitioner::Network& network,
    const partitioner::ClusterProfile& cluster,
    const PartitionRequest& request,
    const Workload& workload);

// The partition that is asked for without a search, see requested_partition(), with kernels that
// take no more scratch than the request allows.
[[nodiscard]] partitioner::Partition chosen_partition(const partitioner::Network& network,
                                                      const PartitionRequest& request,
                                                      int ranks,
                                                      Index batch);

// Whether the optimizer's state is replicated, of a partition that is asked for and no file: as a
// search would choose it, where the state of each step is kept.
void choose_optimizer(const partitioner::Network& network,
                      const partitioner::ClusterProfile& cluster,
                      const PartitionRequest& request,
                      const Workload& workload,
                      partitioner::Partition& partition);

// Replaces kernels of the partition that take more scratch than the request allows.
void limit_workspace(const partitioner::Network& network,
                     const PartitionRequest& request,
                     Index batch,
                     partitioner::Partition& partition);

// Whether this rank will read pictures, where a search is to choose the partition: it leaves the
// reader as it is. Nothing where no search does. Errors are AgreedErrors.
[[nodiscard]] std::optional<bool> reads_before_search(const PartitionRequest& request,
                                                      const Communicator& communicator);

// The partition of what all ranks run together: asked for or, by a search, found by rank 0 and sent
// to all. Errors are AgreedErrors; one is that ranks come to different plans.
[[nodiscard]] partitioner::Partition agreed_partition(const partitioner::Network& network,
                                                      const PartitionRequest& request,
                                                      const Workload& workload,
                                                      const Communicator& communicator,
                                                      const SessionObserver& observer);

// Throws AgreedError on all ranks where gradients would travel rounded, or replicas differ.
void expect_exact_gradients(const partitioner::Partition& partition, const std::string& command);

// Warns on rank 0 where some ranks have nothing to do.
void warn_of_idle_ranks(const partitioner::Partition& partition,
                        const Communicator& communicator,
                        const SessionObserver& observer);

}  // namespace tessera::engine
