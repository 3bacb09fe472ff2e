#include "partitioner/partition/gradient_reduction.h"

#include <algorithm>

namespace tessera::partitioner {

namespace {

constexpr Index kScaleBytes = 4;
constexpr Index kHalfBytes = 2;
constexpr Index kChunksOfRank = 6;  // under way to all others

}  // namespace

Index learnt_elements(const Network& network, int layer) {
  if (network.layer(layer).frozen) {
    return 0;
  }
  const LayerParameters of = layer_parameters(network, layer);
  Index elements = 0;
  for (const ParameterShape& shape : {of.weight, of.bias, of.scale}) {
    elements += shape.channels * shape.row;
  }
  return elements;
}

Index chunks_in_flight(int ranks) {
  return std::max<Index>(kChunksOfRank / std::max(ranks - 1, 1), 1);
}

const char* name_of(ReductionPrecision precision) {
  return precision == ReductionPrecision::Half ? "half" : "exact";
}

std::optional<ReductionPrecision> reduction_precision_named(std::string_view name) {
  for (const ReductionPrecision precision : {ReductionPrecision::Exact, ReductionPrecision::Half}) {
    if (name == name_of(precision)) {
      return precision;
    }
  }
  return std::nullopt;
}

std::vector<GradientBucket> gradient_buckets(const Network& network,
                                             const GradientReduction& gradient_reduction) {
  std::vector<GradientBucket> buckets;
  Index bytes = 0;  // of the last bucket
  for (int layer = network.size() - 1; layer >= 0; --layer) {
    const Index elements = learnt_elements(network, layer);
    if (elements == 0) {
      continue;
    }
    if (buckets.empty() || bytes >= gradient_reduction.bucket_bytes) {
      buckets.push_back({layer, layer});
      bytes = 0;
    }
    buckets.back().first = layer;
    bytes += elements * kSingleBytes;
  }
  return buckets;
}

Index packed_bytes(ReductionPrecision precision, Index scalar_bytes) {
  return precision == ReductionPrecision::Half ? kHalfBytes : scalar_bytes;
}

Index reduction_message_bytes(ReductionPrecision precision, Index elements, Index scalar_bytes) {
  if (elements == 0) {
    return 0;
  }
  return elements * packed_bytes(precision, scalar_bytes) +
         (precision == ReductionPrecision::Half ? kScaleBytes : 0);
}

Index error_feedback_bytes(ReductionPrecision precision,
                           const TravellingElements& elements,
                           Index scalar_bytes) {
  return precision == ReductionPrecision::Half
             ? (kHalfBytes + scalar_bytes) * elements.shared + scalar_bytes * elements.borrowed
             : 0;
}

}  // namespace tessera::partitioner
