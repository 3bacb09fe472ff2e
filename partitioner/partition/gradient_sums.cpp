#include "partitioner/partition/gradient_sums.h"

#include <algorithm>

namespace tessera::partitioner {

namespace {

constexpr Index kScaleBytes = 4;
constexpr Index kHalfBytes = 2;
constexpr Index kPiecesOfRank = 6;  // under way to all others

}  // namespace

Index learnt_elements(const Network& network, int layer) {
  const LayerParameters of = layer_parameters(network, layer);
  Index elements = 0;
  for (const ParameterShape& shape : {of.weight, of.bias, of.scale}) {
    elements += shape.channels * shape.row;
  }
  return elements;
}

Index pieces_under_way(int ranks) {
  return std::max<Index>(kPiecesOfRank / std::max(ranks - 1, 1), 1);
}

const char* name_of(SumPrecision precision) {
  return precision == SumPrecision::Half ? "half" : "exact";
}

std::optional<SumPrecision> sum_precision_named(std::string_view name) {
  for (const SumPrecision precision : {SumPrecision::Exact, SumPrecision::Half}) {
    if (name == name_of(precision)) {
      return precision;
    }
  }
  return std::nullopt;
}

std::vector<SumBucket> sum_buckets(const Network& network, const GradientSums& sums) {
  std::vector<SumBucket> buckets;
  Index bytes = 0;  // of the last bucket
  for (int layer = network.size() - 1; layer >= 0; --layer) {
    const Index elements = learnt_elements(network, layer);
    if (elements == 0) {
      continue;
    }
    if (buckets.empty() || bytes >= sums.bucket_bytes) {
      buckets.push_back({layer, layer});
      bytes = 0;
    }
    buckets.back().first = layer;
    bytes += elements * kSingleBytes;
  }
  return buckets;
}

Index packed_bytes(SumPrecision precision, Index scalar_bytes) {
  return precision == SumPrecision::Half ? kHalfBytes : scalar_bytes;
}

Index sum_message_bytes(SumPrecision precision, Index elements, Index scalar_bytes) {
  if (elements == 0) {
    return 0;
  }
  return elements * packed_bytes(precision, scalar_bytes) +
         (precision == SumPrecision::Half ? kScaleBytes : 0);
}

Index sum_remainder_bytes(SumPrecision precision,
                          const TravellingElements& elements,
                          Index scalar_bytes) {
  return precision == SumPrecision::Half
             ? (kHalfBytes + scalar_bytes) * elements.shared + scalar_bytes * elements.borrowed
             : 0;
}

}  // namespace tessera::partitioner
