// The header alone: no other machine needs the library.
#define XXH_INLINE_ALL
#include "engine/train/verifying/copy_equality.h"

#include <cstdint>
#include <cstring>
#include <xxhash.h>

#include "engine/comm/gathering.h"
#include "engine/execution/parameter_chunks.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

using ParameterDigests = std::vector<std::uint64_t>;  // of what a rank holds of each parameter

ParameterDigests digests_of(const ParameterSet<float>& parameters) {
  ParameterDigests digests;
  for (const Parameter<float>& parameter : parameters.all()) {
    digests.push_back(is_learnt(*parameter.plan)
                          ? XXH3_64bits(parameter.values.data(),
                                        static_cast<std::size_t>(parameter.values.bytes()))
                          : 0);
  }
  return digests;
}

// Ranks that hold other values than the lowest rank with the same elements; the first such ranks
// where there are several sets of elements.
std::optional<UnequalCopies> unequal_copies_of(const partitioner::ParameterPlan& plan,
                                               std::size_t place,
                                               const std::vector<ParameterDigests>& of_ranks) {
  const auto digest = [&](const PlacedRun& run) {
    return of_ranks[static_cast<std::size_t>(run.rank)][place];
  };
  const auto has_digest = [&](const PlacedRun& run) {
    return !of_ranks[static_cast<std::size_t>(run.rank)].empty();
  };
  std::vector<PlacedRun> held = held_values(plan);
  std::erase_if(held, [&](const PlacedRun& run) { return !has_digest(run); });
  for (const PlacedRun& first : held) {
    UnequalCopies unequal;
    unequal.parameter = parameter_name(plan);
    unequal.lowest = first.rank;
    for (const PlacedRun& other : held) {
      if (other.rank > first.rank && other.elements == first.elements &&
          digest(other) != digest(first)) {
        unequal.ranks.push_back(other.rank);
      }
    }
    if (!unequal.ranks.empty()) {
      return unequal;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<UnequalCopies> unequal_copies(Execution<float>& execution) {
  const ParameterSet<float>& parameters = execution.parameters();
  const ParameterDigests mine = digests_of(parameters);
  const int count = execution.plan().ranks_of_copy();
  const int rank = execution.communicator().rank();
  const int first_rank = rank / count * count;
  Gathering gathering(execution.communicator(), first_rank, count);
  gathering.set(bytes_of(mine.data(), std::ssize(mine)));
  for (int round = 0; round < Gathering::kRounds; ++round) {
    gathering.start(round);
    gathering.finish();
  }
  std::vector<ParameterDigests> of_ranks;  // of others than this copy's: nothing
  for (const std::vector<std::byte>& bytes : gathering.all()) {
    ParameterDigests& theirs = of_ranks.emplace_back(bytes.size() / sizeof(std::uint64_t));
    expects(theirs.empty() || theirs.size() == mine.size(), "a digest of each parameter");
    if (!theirs.empty()) {
      std::memcpy(theirs.data(), bytes.data(), bytes.size());
    }
  }
  std::optional<UnequalCopies> first;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const partitioner::ParameterPlan& plan = *parameters.all()[i].plan;
    if (const auto unequal =
            is_learnt(plan) ? unequal_copies_of(plan, i, of_ranks) : std::nullopt) {
      first = first ? first : unequal;
      ++first->parameters;
    }
  }
  return first;
}

}  // namespace tessera::engine
