// Multi-scale training of detectors: which sizes the input of a run has beside the configured one,
// and what that takes.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/comm/agreement.h"
#include "engine/session/planning.h"
#include "engine/train/sized_plans.h"
#include "partitioner/cfg/model_file.h"
#include "partitioner/partition/scaled_partition.h"
#include "partitioner/text/plan_report.h"

namespace tessera::engine {

// The sizes of `network`, the model's, where its file says `random` or a factor is `asked` for (0:
// none, whatever the file says); nothing where there is one size. Throws InputError where the
// network cannot have them.
[[nodiscard]] std::optional<partitioner::InputSizes> input_sizes(
    const partitioner::ModelFile& model,
    const partitioner::Network& network,
    const std::optional<double>& asked,
    const std::string& file);

// Throws InputError where the partition of the configured size cannot be that of another size, or
// would give ranks other parameters there.
void expect_plans(const partitioner::Network& network,
                  const partitioner::Partition& partition,
                  Index batch,
                  const partitioner::InputSizes& sizes,
                  const std::string& file);

// What is wrong with a partition, at the largest size.
[[nodiscard]] std::string at_largest(const std::string& problem,
                                     const partitioner::InputSizes& sizes);

// The partition that is asked for, found by `find(network)` for that network. A search looks at the
// largest size, so that the others fit into memory, too; limits of scratch hold there.
template <class Find>
[[nodiscard]] partitioner::Partition partition_for_sizes(
    const partitioner::Network& network,
    const PartitionRequest& request,
    Index batch,
    const std::optional<partitioner::InputSizes>& sizes,
    const Find& find) {
  if (!sizes) {
    return find(network);
  }
  const partitioner::Network largest = with_input(network, sizes->largest());
  if (request.automatic) {
    try {
      return scaled(find(largest), largest, network);
    } catch (const AgreedError& error) {
      throw AgreedError(at_largest(error.what(), *sizes));
    } catch (const InputError& error) {
      throw InputError(at_largest(error.what(), *sizes));
    }
  }
  partitioner::Partition partition = find(network);
  partitioner::Partition there = scaled(partition, network, largest);
  limit_workspace(largest, request, batch, there);
  partition.kernels = there.kernels;
  return partition;
}

// The predicted seconds of a step, over all sizes by how often they are drawn.
[[nodiscard]] double mean_step_seconds(const partitioner::Network& network,
                                       const partitioner::ClusterProfile& cluster,
                                       const PartitionRequest& request,
                                       const Workload& workload,
                                       const partitioner::Partition& partition,
                                       const partitioner::InputSizes& sizes);

// What a user has to know of it beside a plan, which is that of the configured size.
struct MultiScaleFigures {
  std::vector<partitioner::MemoryUse> memory;  // of each rank at the largest size
  std::optional<double> mean_step_s;           // where it is predicted
};

// "multi-scale: inputs from 320x320 to 608x608 (10 sizes), ..." with a line break; the same as
// JSON.
[[nodiscard]] std::string multi_scale_line(const partitioner::InputSizes& sizes,
                                           const MultiScaleFigures& figures);
[[nodiscard]] std::string multi_scale_json(const partitioner::InputSizes& sizes,
                                           const MultiScaleFigures& figures);

}  // namespace tessera::engine
