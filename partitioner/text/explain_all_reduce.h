// Why gradients are reduced the way they are: what other algorithms would take on this cluster, and
// how far the model of messages is from all-reduces that `tessera probe` measured.

#pragma once

#include <string>
#include <vector>

#include "partitioner/cost/cluster_profile.h"
#include "partitioner/cost/transfer_model.h"
#include "partitioner/partition/gradient_reduction.h"

namespace tessera::partitioner {

// All learnt parameters, over all devices, bucket after bucket and with nothing else on the links.
struct ExplainedAllReduce {
  AllReduceAlgorithm algorithm = AllReduceAlgorithm::Owners;
  double seconds = 0;
};
// In the order of kAllReduceAlgorithms: first the one that is used.
[[nodiscard]] std::vector<ExplainedAllReduce> compare_all_reduce_algorithms(
    const Network& network,
    const ClusterProfile& cluster,
    const GradientReduction& gradient_reduction);

struct MeasuredAllReduce {
  AllReducePoint measured;
  double predicted_s = 0;
};
// In the order of the profile; empty where it has none.
[[nodiscard]] std::vector<MeasuredAllReduce> compare_measured_all_reduces(
    const ClusterProfile& cluster);

// At most 100 columns.
[[nodiscard]] std::string all_reduce_table(const std::vector<ExplainedAllReduce>& reductions);
[[nodiscard]] std::string measured_all_reduce_table(
    const std::vector<MeasuredAllReduce>& reductions);

}  // namespace tessera::partitioner
