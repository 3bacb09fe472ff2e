#include "partitioner/memory.h"

#include <map>
#include <set>

#include "partitioner/activation_arena.h"
#include "partitioner/layer_memory.h"

namespace partitioner {

namespace {

bool is_learnt(ParameterKind kind) {
  return kind != ParameterKind::Mean && kind != ParameterKind::Variance;
}

// Cells packed for messages of `rank`. One between two of its own buffers is packed once.
Index packed_cells(const std::vector<Message>& messages, int rank) {
  Index cells = 0;
  for (const Message& message : messages) {
    if (message.from == rank || message.to == rank) {
      cells += message.region.volume();
    }
  }
  return cells;
}

Index message_scalars(const Plan& plan, int rank, const MemoryOptions& options) {
  Index scalars = 0;
  for (const Exchange& exchange : plan.exchanges) {
    const bool read_in_place = exchange.map == kImage && plan.reader == kEveryRank;
    if (!read_in_place || options.image_gradient) {
      scalars += packed_cells(exchange.messages, rank);
    }
  }
  for (const Exchange& collapse : plan.collapses) {
    scalars += packed_cells(collapse.messages, rank);
  }
  return scalars;
}

// Of one other rank in a bucket: elements that `rank` owns and the other holds, and the other way.
struct SharedElements {
  Index owned = 0;
  Index borrowed = 0;
};

// What a bucket of parameters keeps on `rank` for its messages.
Index bucket_bytes(const Plan& plan, const SumBucket& bucket, int rank, Index scalar_bytes) {
  std::map<int, SharedElements> peers;
  Index shared = 0;  // owned elements that others hold too
  for (const ParameterPlan& parameter : plan.parameters) {
    if (!is_learnt(parameter.kind) || parameter.layer < bucket.first ||
        parameter.layer > bucket.last) {
      continue;
    }
    std::set<Index> runs;  // by their first element
    for (const Message& message : parameter.messages) {
      const Index elements = message.region.volume();
      if (message.from == rank) {
        peers[message.to].owned += elements;
        shared += runs.insert(message.region.cols.begin).second ? elements : 0;
      } else if (message.to == rank) {
        peers[message.from].borrowed += elements;
      }
    }
  }
  Index bytes = 0;
  Index borrowed = 0;
  for (const auto& [peer, elements] : peers) {
    bytes += sum_message_bytes(plan.sums.precision, elements.owned, scalar_bytes) +
             sum_message_bytes(plan.sums.precision, elements.borrowed, scalar_bytes);
    borrowed += elements.borrowed;
  }
  return bytes + sum_remainder_bytes(plan.sums.precision, {shared, borrowed}, scalar_bytes);
}

Index parameter_message_bytes(const Network& network,
                              const Plan& plan,
                              int rank,
                              Index scalar_bytes) {
  Index bytes = 0;
  for (const SumBucket& bucket : sum_buckets(network, plan.sums)) {
    bytes += bucket_bytes(plan, bucket, rank, scalar_bytes);
  }
  for (const ParameterPlan& parameter : plan.parameters) {
    bytes += is_learnt(parameter.kind) ? 0 : packed_cells(parameter.messages, rank) * scalar_bytes;
  }
  return bytes;
}

Index received_channels(const Plan& plan, int layer, int rank, Region Tile::*contributes) {
  const Region& needed = plan.tile(layer, rank).computed;
  Index channels = 0;
  for (int from = 0; from < plan.ranks; ++from) {
    const Region& share = plan.tile(layer, from).*contributes;
    if (from != rank && !share.empty() && !needed.empty()) {
      channels += intersect(share.channels, needed.channels).size();
    }
  }
  return channels;
}

}  // namespace

Index channel_sum_bytes(const Network& network, const Plan& plan, int layer, int rank) {
  if (!normalizes(network.layer(layer).operation)) {
    return 0;
  }
  constexpr Index kNumberBytes = 8;
  return kNumberBytes * (3 * received_channels(plan, layer, rank, &Tile::owned) +
                         2 * received_channels(plan, layer, rank, &Tile::backward));
}

MemoryUse planned_memory(const Network& network,
                         const Plan& plan,
                         int rank,
                         const MemoryOptions& options) {
  MemoryUse use;
  const auto own = static_cast<std::size_t>(rank);
  for (const ParameterPlan& parameter : plan.parameters) {
    const Index held = parameter.required[own].size() * parameter.shape.row;
    use.weights += held * options.scalar_bytes;
    if (!options.training || !is_learnt(parameter.kind)) {
      continue;
    }
    use.gradients += held * options.scalar_bytes;
    for (const Range& run : parameter.owned[own]) {
      use.optimizer += run.size() * options.scalar_bytes * (options.adam ? 2 : 1);
    }
  }
  use.activations =
      activation_arena(network,
                       plan,
                       rank,
                       {options.scalar_bytes, options.training, options.image_gradient, false})
          .bytes;
  use.messages = message_scalars(plan, rank, options) * options.scalar_bytes;
  if (options.training) {
    use.messages += parameter_message_bytes(network, plan, rank, options.scalar_bytes);
  }
  for (int layer = 0; layer < network.size(); ++layer) {
    use.messages += channel_sum_bytes(network, plan, layer, rank);
  }
  use.workspace = options.workspace_bytes;
  use.pictures =
      options.picture_batches * image_region(network, plan, rank).volume() * options.scalar_bytes;
  use.program = options.program_bytes;
  return use;
}

std::vector<MemoryUse> planned_memory_of_ranks(const Network& network,
                                               const Plan& plan,
                                               const MemoryOptions& options,
                                               const std::vector<Index>& workspace_bytes,
                                               const std::vector<Index>& program_bytes) {
  std::vector<MemoryUse> ranks;
  ranks.reserve(static_cast<std::size_t>(plan.ranks));
  for (int rank = 0; rank < plan.ranks; ++rank) {
    const auto own = static_cast<std::size_t>(rank);
    MemoryOptions of_rank = options;
    if (!workspace_bytes.empty()) {
      of_rank.workspace_bytes = workspace_bytes[own];
    }
    if (!program_bytes.empty()) {
      of_rank.program_bytes = program_bytes[own];
    }
    ranks.push_back(planned_memory(network, plan, rank, of_rank));
  }
  return ranks;
}

}  // namespace partitioner
