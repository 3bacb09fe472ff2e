// Why gradients are summed the way they are: what other algorithms would take on this cluster, and
// how far the model of messages is from sums that `tessera probe` measured.

#pragma once

#include <string>
#include <vector>

#include "partitioner/cost/cluster_profile.h"
#include "partitioner/cost/transfer_model.h"
#include "partitioner/partition/gradient_sums.h"

namespace tessera::partitioner {

// All learnt parameters, over all devices, bucket after bucket and with nothing else on the links.
struct ExplainedSum {
  SumAlgorithm algorithm = SumAlgorithm::Owners;
  double seconds = 0;
};
// In the order of kSumAlgorithms: first the one that is used.
[[nodiscard]] std::vector<ExplainedSum> compare_sum_algorithms(const Network& network,
                                                               const ClusterProfile& cluster,
                                                               const GradientSums& sums);

struct MeasuredSum {
  AllReducePoint measured;
  double predicted_s = 0;
};
// In the order of the profile; empty where it has none.
[[nodiscard]] std::vector<MeasuredSum> compare_measured_sums(const ClusterProfile& cluster);

// At most 100 columns.
[[nodiscard]] std::string sum_algorithms_table(const std::vector<ExplainedSum>& sums);
[[nodiscard]] std::string measured_sums_table(const std::vector<MeasuredSum>& sums);

}  // namespace tessera::partitioner
