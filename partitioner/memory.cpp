#include "partitioner/memory.h"

#include "partitioner/gradient_arena.h"
#include "partitioner/layout.h"

namespace partitioner {

namespace {

bool normalizes(const Operation& operation) {
  const auto* convolution = std::get_if<Convolution>(&operation);
  const auto* connected = std::get_if<Connected>(&operation);
  return (convolution != nullptr && convolution->batch_normalize) ||
         (connected != nullptr && connected->batch_normalize);
}

bool slope_needs_sums(Activation activation) {
  return activation == Activation::Swish || activation == Activation::Mish;
}

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

// Scalars of maps, of their gradients, and of sums kept by layers.
Index activation_scalars(const Network& network,
                         const Plan& plan,
                         int rank,
                         const MemoryOptions& options) {
  Index scalars = 0;
  for (const Buffer& buffer : plan.buffers[static_cast<std::size_t>(rank)]) {
    scalars += blocked_volume(buffer.region);
  }
  if (options.training) {
    scalars += gradient_arena(network, plan, rank, options.image_gradient).scalars;
  }
  for (int layer = 0; layer < network.size(); ++layer) {
    if (keeps_sums(network.layer(layer).operation)) {
      scalars += blocked_volume(plan.tile(layer, rank).computed);
    }
  }
  return scalars;
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
  for (const ParameterPlan& parameter : plan.parameters) {
    scalars += packed_cells(parameter.messages, rank);
  }
  return scalars;
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

bool keeps_sums(const Operation& operation) {
  if (const auto* convolution = std::get_if<Convolution>(&operation)) {
    return convolution->batch_normalize || slope_needs_sums(convolution->activation);
  }
  if (const auto* connected = std::get_if<Connected>(&operation)) {
    return connected->batch_normalize || slope_needs_sums(connected->activation);
  }
  const auto* shortcut = std::get_if<Shortcut>(&operation);
  return shortcut != nullptr && slope_needs_sums(shortcut->activation);
}

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
  use.activations = activation_scalars(network, plan, rank, options) * options.scalar_bytes;
  use.messages = message_scalars(plan, rank, options) * options.scalar_bytes;
  for (int layer = 0; layer < network.size(); ++layer) {
    use.messages += channel_sum_bytes(network, plan, layer, rank);
  }
  use.workspace = options.workspace_bytes;
  return use;
}

}  // namespace partitioner
