#include "partitioner/text/explain_all_reduce.h"

#include <fmt/format.h>

#include "partitioner/base/quantities.h"
#include "partitioner/base/text_table.h"

namespace tessera::partitioner {

namespace {

std::string milliseconds(double seconds) {
  return fmt::format("{:.1f}", 1000 * seconds);
}

// Bytes of what the layer learns, tensor by tensor.
Index layer_bytes(const Network& network, int layer, const Compression& compression) {
  if (learnt_elements(network, layer) == 0) {
    return 0;
  }
  const LayerParameters of = layer_parameters(network, layer);
  Index bytes = 0;
  for (const ParameterShape& shape : {of.weight, of.bias, of.scale}) {
    bytes += packed_bytes(compression, {shape.channels * shape.row, shape.row}, kSingleBytes);
  }
  return bytes;
}

}  // namespace

std::vector<ExplainedAllReduce> compare_all_reduce_algorithms(
    const Network& network,
    const ClusterProfile& cluster,
    const GradientReduction& gradient_reduction) {
  const std::vector<int> ranks = first_ranks(cluster.size());
  std::vector<ExplainedAllReduce> compared;
  for (const AllReduceAlgorithm algorithm : kAllReduceAlgorithms) {
    double seconds = 0;
    for (const GradientBucket& bucket : gradient_buckets(network, gradient_reduction)) {
      Index bytes = packing_overhead_bytes(gradient_reduction.compression);
      for (int layer = bucket.first; layer <= bucket.last; ++layer) {
        bytes += layer_bytes(network, layer, gradient_reduction.compression);
      }
      seconds +=
          all_reduce_seconds(cluster, algorithm, ranks, static_cast<double>(bytes), kInfiniteRate);
    }
    compared.push_back({algorithm, seconds});
  }
  return compared;
}

std::vector<MeasuredAllReduce> compare_measured_all_reduces(const ClusterProfile& cluster) {
  std::vector<MeasuredAllReduce> compared;
  for (const AllReducePoint& point : cluster.all_reduces) {
    compared.push_back({point,
                        all_reduce_seconds(cluster,
                                           AllReduceAlgorithm::Owners,
                                           first_ranks(point.devices),
                                           static_cast<double>(point.bytes),
                                           kInfiniteRate)});
  }
  return compared;
}

std::string all_reduce_table(const std::vector<ExplainedAllReduce>& reductions) {
  TextTable table({{"all-reduce of all gradients by", Align::Left}, {"predicted, ms"}});
  for (const auto& [algorithm, seconds] : reductions) {
    const char* const note = algorithm == AllReduceAlgorithm::Owners ? ", as done here" : "";
    table.add_row({std::string(name_of(algorithm)) + note, milliseconds(seconds)});
  }
  return table.text();
}

std::string measured_all_reduce_table(const std::vector<MeasuredAllReduce>& reductions) {
  TextTable table(
      {{"measured all-reduce, devices"}, {"bytes"}, {"measured, ms"}, {"predicted, ms"}});
  for (const auto& [measured, predicted_s] : reductions) {
    table.add_row({std::to_string(measured.devices),
                   readable_bytes(measured.bytes),
                   milliseconds(measured.seconds),
                   milliseconds(predicted_s)});
  }
  return table.text();
}

}  // namespace tessera::partitioner
