#include "partitioner/report/explain_sums.h"

#include <fmt/format.h>

#include "partitioner/base/quantities.h"
#include "partitioner/base/text_table.h"

namespace tessera::partitioner {

namespace {

std::string milliseconds(double seconds) {
  return fmt::format("{:.1f}", 1000 * seconds);
}

}  // namespace

std::vector<ExplainedSum> compare_sum_algorithms(const Network& network,
                                                 const ClusterProfile& cluster,
                                                 const GradientSums& sums) {
  const std::vector<int> ranks = first_ranks(cluster.size());
  std::vector<ExplainedSum> compared;
  for (const SumAlgorithm algorithm : kSumAlgorithms) {
    double seconds = 0;
    for (const SumBucket& bucket : sum_buckets(network, sums)) {
      Index elements = 0;
      for (int layer = bucket.first; layer <= bucket.last; ++layer) {
        elements += learnt_elements(network, layer);
      }
      const auto bytes =
          static_cast<double>(sum_message_bytes(sums.precision, elements, kSingleBytes));
      seconds += sum_seconds(cluster, algorithm, ranks, bytes, kInfiniteRate);
    }
    compared.push_back({algorithm, seconds});
  }
  return compared;
}

std::vector<MeasuredSum> compare_measured_sums(const ClusterProfile& cluster) {
  std::vector<MeasuredSum> compared;
  for (const AllReducePoint& point : cluster.all_reduces) {
    compared.push_back({point,
                        sum_seconds(cluster,
                                    SumAlgorithm::Owners,
                                    first_ranks(point.devices),
                                    static_cast<double>(point.bytes),
                                    kInfiniteRate)});
  }
  return compared;
}

std::string sum_algorithms_table(const std::vector<ExplainedSum>& sums) {
  TextTable table({{"sums of all gradients by", Align::Left}, {"predicted, ms"}});
  for (const auto& [algorithm, seconds] : sums) {
    const char* const note = algorithm == SumAlgorithm::Owners ? ", as it is done" : "";
    table.add_row({std::string(name_of(algorithm)) + note, milliseconds(seconds)});
  }
  return table.text();
}

std::string measured_sums_table(const std::vector<MeasuredSum>& sums) {
  TextTable table(
      {{"sums that were probed, devices"}, {"bytes"}, {"measured, ms"}, {"predicted, ms"}});
  for (const auto& [measured, predicted_s] : sums) {
    table.add_row({std::to_string(measured.devices),
                   readable_bytes(measured.bytes),
                   milliseconds(measured.seconds),
                   milliseconds(predicted_s)});
  }
  return table.text();
}

}  // namespace tessera::partitioner
