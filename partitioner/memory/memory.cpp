#include "partitioner/memory/memory.h"

#include <algorithm>

#include "partitioner/memory/activation_arena.h"
#include "partitioner/memory/message_memory.h"
#include "partitioner/memory/synchronisation_memory.h"

namespace tessera::partitioner {

namespace {

// Parameters of a rank, their gradients, and the optimizer's state.
void add_parameters(const Plan& plan, int rank, const MemoryOptions& options, MemoryUse& use) {
  const auto own = static_cast<std::size_t>(rank);
  for (const ParameterPlan& parameter : plan.parameters) {
    const Index held = parameter.required[own].size() * parameter.shape.row;
    use.weights += held * options.scalar_bytes;
    if (!options.training || parameter.frozen) {
      continue;
    }
    const bool learnt = is_learnt(parameter);
    const Index arrays =
        (learnt ? (options.trained.adam ? 2 : 1) : 0) + (options.trained.averages ? 1 : 0);
    use.gradients += learnt ? held * options.scalar_bytes : 0;
    for (const Range& run : parameter.updated[own]) {
      use.optimizer += run.size() * options.scalar_bytes * arrays;
    }
  }
}

}  // namespace

std::vector<MemoryKind> memory_kinds_of(const std::vector<MemoryUse>& ranks) {
  const bool keeps =
      std::any_of(ranks.begin(), ranks.end(), [](const MemoryUse& use) { return use.kept > 0; });
  std::vector<MemoryKind> kinds;
  for (const MemoryKind& kind : kMemoryKinds) {
    if (keeps || kind.bytes != &MemoryUse::kept) {
      kinds.push_back(kind);
    }
  }
  return kinds;
}

std::vector<MemoryUse> planned_memory_of_ranks(const Network& network,
                                               const Plan& plan,
                                               const MemoryOptions& options,
                                               const std::vector<Index>& workspace_bytes,
                                               const std::vector<Index>& program_bytes) {
  const std::vector<Index> messages = message_bytes_of_ranks(plan, options);
  const std::vector<Index> arenas = arena_bytes_of_ranks(
      network, plan, {options.scalar_bytes, options.training, options.image_gradient, false});
  const std::vector<Index> kept =
      kept_bytes_of_ranks(plan, options.trained, options.kept, options.scalar_bytes);
  std::vector<MemoryUse> ranks(static_cast<std::size_t>(plan.ranks));
  for (int rank = 0; rank < plan.ranks; ++rank) {
    const auto own = static_cast<std::size_t>(rank);
    MemoryUse& use = ranks[own];
    add_parameters(plan, rank, options, use);
    use.activations = arenas[own];
    use.kept = kept[own];
    use.messages = messages[own] + synchronisation_bytes(plan, rank, options);
    use.workspace = workspace_bytes.empty() ? options.workspace_bytes : workspace_bytes[own];
    const Index pixels = image_region(network, plan, rank).volume();
    const bool reads = plan.reader.reads(rank);
    use.pictures = options.picture_batches * pixels * options.scalar_bytes;
    use.decoding = reads && pixels > 0 ? options.decoding_bytes : 0;
    use.data = (reads ? options.data_bytes : 0) + (rank == 0 ? options.judging_bytes : 0);
    use.cache = reads ? options.cache_bytes : 0;
    use.program = program_bytes.empty() ? options.program_bytes : program_bytes[own];
    if (use.of_network() == 0) {
      use.program -= std::min(use.program, kWorkBytes);
    }
  }
  return ranks;
}

std::vector<MemoryUse> larger_of_ranks(std::vector<MemoryUse> one,
                                       const std::vector<MemoryUse>& other) {
  for (std::size_t rank = 0; rank < one.size(); ++rank) {
    one[rank] = one[rank].total() < other[rank].total() ? other[rank] : one[rank];
  }
  return one;
}

}  // namespace tessera::partitioner
