#include "partitioner/partition/gradient_reduction.h"

#include <algorithm>

namespace tessera::partitioner {

namespace {

constexpr Index kChunksOfRank = 6;  // under way to all others

}  // namespace

const char* name_of(OptimizerStates states) {
  return states == OptimizerStates::Sharded ? "sharded" : "replicated";
}

std::optional<OptimizerStates> optimizer_states_named(std::string_view name) {
  for (const OptimizerStates states : {OptimizerStates::Sharded, OptimizerStates::Replicated}) {
    if (name == name_of(states)) {
      return states;
    }
  }
  return std::nullopt;
}

Index learnt_elements(const Network& network, int layer) {
  if (network.layer(layer).frozen) {
    return 0;
  }
  const LayerParameters parameters = layer_parameters(network, layer);
  Index elements = 0;
  for (const ParameterShape& shape : {parameters.weight, parameters.bias, parameters.scale}) {
    elements += shape.channels * shape.row;
  }
  return elements;
}

Index chunks_in_flight(int ranks) {
  return std::max<Index>(kChunksOfRank / std::max(ranks - 1, 1), 1);
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

Index reduction_message_bytes(const Compression& compression,
                              const ElementRun& run,
                              Index scalar_bytes) {
  return run.elements == 0
             ? 0
             : packed_bytes(compression, run, scalar_bytes) + packing_overhead_bytes(compression);
}

Index error_feedback_bytes(const Compression& compression,
                           const TravellingElements& elements,
                           Index scalar_bytes) {
  return compression == Compression::Exact
             ? 0
             : elements.packed_bytes + scalar_bytes * (elements.shared + elements.borrowed);
}

}  // namespace tessera::partitioner
