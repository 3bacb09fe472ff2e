#include "partitioner/partition/replicas.h"

#include <algorithm>
#include <fmt/format.h>
#include <string_view>
#include <vector>

#include "partitioner/base/errors.h"
#include "partitioner/base/number_text.h"
#include "partitioner/base/quantities.h"
#include "partitioner/partition/partition.h"

namespace tessera::partitioner {

namespace {

struct ModeName {
  SyncMode mode;
  std::string_view name;
  Index least = 0;  // of the number behind it
  Index most = -1;  // less than the least: there is none
};
constexpr ModeName kModes[] = {{SyncMode::EveryStep, "every-step"},
                               {SyncMode::Local, "local", 1, kMostLocalSteps},
                               {SyncMode::PostLocal, "post-local", 1, kMostLocalSteps},
                               {SyncMode::ParameterRank, "parameter-rank", 0, kMostStaleness},
                               {SyncMode::Gossip, "gossip"}};

const ModeName& row_of(SyncMode mode) {
  return *std::find_if(std::begin(kModes), std::end(kModes), [mode](const ModeName& row) {
    return row.mode == mode;
  });
}

// The images of all replicas, each cut as one of `batch` images is.
Cut repeated(const Cut& cut, int count, Index batch) {
  Cut result{cut.parts * count, {}};
  if (!cut.boundaries.empty()) {
    result.boundaries = {0};
    for (Index replica = 0; replica < count; ++replica) {
      for (std::size_t i = 1; i < cut.boundaries.size(); ++i) {
        result.boundaries.push_back(replica * batch + cut.boundaries[i]);
      }
    }
  }
  return result;
}

Cut first_of(const Cut& cut, int count) {
  Cut result{cut.parts / count, {}};
  if (!cut.boundaries.empty()) {
    result.boundaries.assign(
        cut.boundaries.begin(),
        cut.boundaries.begin() + static_cast<std::ptrdiff_t>(result.parts) + 1);
  }
  return result;
}

// Tiles that follow each other in the numbering and differ in images alone at their start: those of
// a band, or all.
std::vector<Index> tiles_of_bands(const Group& group) {
  std::vector<Index> tiles;
  for (const Cut& band : group.bands) {
    tiles.push_back(band.parts * group.channels.parts * group.cols.parts);
  }
  return tiles.empty() ? std::vector<Index>{group.tiles()} : tiles;
}

}  // namespace

std::string to_text(const Synchronisation& sync) {
  const ModeName& row = row_of(sync.mode);
  return row.most < row.least ? std::string(row.name) : fmt::format("{}:{}", row.name, sync.steps);
}

Synchronisation parse_synchronisation(const std::string& text) {
  const std::string_view all = text;
  const std::size_t colon = std::min(all.find(':'), all.size());
  for (const ModeName& row : kModes) {
    if (all.substr(0, colon) != row.name) {
      continue;
    }
    if (row.most < row.least) {
      if (colon == all.size()) {
        return {row.mode, 0};
      }
      break;
    }
    const std::string_view number = all.substr(std::min(colon + 1, all.size()));
    if (const auto steps = parsed_number<Index>(number, row.least, row.most)) {
      return {row.mode, *steps};
    }
    throw InputError(fmt::format(
        "\"{}\": expected {}:N with N from {} to {}", text, row.name, row.least, row.most));
  }
  throw InputError(fmt::format(
      "\"{}\" is none of every-step, local:H, post-local:H, parameter-rank:S, gossip", text));
}

void expect_even_replicas(int replicas, int ranks, Index batch) {
  constexpr const char* kOption = "--replicas";
  if (ranks % replicas != 0) {
    const int fewer = ranks / replicas * replicas;
    throw InputError(
        kOption,
        0,
        fmt::format("{} cannot be divided into {} replicas of equal size: start {} with "
                    "mpiexec.mpich -n {}",
                    counted(ranks, "rank"),
                    replicas,
                    fewer == 0 ? std::to_string(replicas)
                               : fmt::format("{} or {}", fewer, fewer + replicas),
                    std::max(fewer, replicas)));
  }
  if (batch % replicas != 0) {
    const Index fewer = batch / replicas * replicas;
    throw InputError(kOption,
                     0,
                     fmt::format("{} images per pass cannot be divided among {} replicas: give a "
                                 "multiple of {} (--batch), such as {}",
                                 batch,
                                 replicas,
                                 replicas,
                                 fewer + replicas));
  }
}

Partition replicated(const Partition& one, const Replicas& replicas, Index batch) {
  expects(one.replicas.count == 1, "a single replica is repeated");
  Partition all = one;
  all.replicas = replicas;
  if (replicas.independent()) {  // each has an optimizer of its own
    all.gradient_reduction.optimizer = OptimizerStates::Sharded;
  }
  all.ranks = one.ranks * replicas.count;
  for (Group& group : all.groups) {
    const std::vector<int> ranks = group.ranks;
    group.ranks.clear();
    auto next = ranks.begin();
    for (const Index tiles : tiles_of_bands(group)) {
      const auto end = next + static_cast<std::ptrdiff_t>(tiles);
      for (int replica = 0; replica < replicas.count; ++replica) {
        std::transform(next, end, std::back_inserter(group.ranks), [&](int rank) {
          return rank + replica * one.ranks;
        });
      }
      next = end;
    }
    for (Cut& band : group.bands) {
      band = repeated(band, replicas.count, batch);
    }
    if (group.bands.empty()) {
      group.images = repeated(group.images, replicas.count, batch);
    }
  }
  return all;
}

Partition one_replica(const Partition& partition) {
  const int count = partition.replicas.count;
  Partition one = partition;
  one.replicas = {};
  one.ranks = partition.ranks / count;
  for (Group& group : one.groups) {
    const std::vector<int> ranks = group.ranks;
    group.ranks.clear();
    auto next = ranks.begin();
    for (const Index tiles : tiles_of_bands(group)) {
      group.ranks.insert(
          group.ranks.end(), next, next + static_cast<std::ptrdiff_t>(tiles / count));
      next += static_cast<std::ptrdiff_t>(tiles);
    }
    for (Cut& band : group.bands) {
      band = first_of(band, count);
    }
    if (group.bands.empty()) {
      group.images = first_of(group.images, count);
    }
  }
  return one;
}

}  // namespace tessera::partitioner
