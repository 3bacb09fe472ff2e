// Partitions as a test wants them, for as many ranks as there happen to be.

#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "partitioner/partition/partition.h"

namespace tessera::tests {

using partitioner::Cut;
using partitioner::Group;
using partitioner::Network;
using partitioner::Partition;

struct Cuts {
  Cut images;
  Cut channels;
  Cut rows;
  Cut cols;
};

// `parts` pieces, of which the first `parts - 1` have `size` cells (as long as there are any) and
// the last the rest.
[[nodiscard]] inline Cut small_pieces(Index parts, Index size, Index extent) {
  Cut cut{parts, {0}};
  for (Index i = 1; i < parts; ++i) {
    cut.boundaries.push_back(std::min(i * size, extent));
  }
  cut.boundaries.push_back(extent);
  return cut;
}

[[nodiscard]] inline Cuts rows_cut(Index parts) {
  return {{}, {}, {parts, {}}, {}};
}
[[nodiscard]] inline Cuts cols_cut(Index parts) {
  return {{}, {}, {}, {parts, {}}};
}
[[nodiscard]] inline Cuts images_cut(Index parts) {
  return {{parts, {}}, {}, {}, {}};
}
[[nodiscard]] inline Cuts channels_cut(Index parts) {
  return {{}, {parts, {}}, {}, {}};
}

// rows x cols is at most `ranks`, and near to square.
[[nodiscard]] inline Cuts grid(int ranks) {
  Index rows = 1;
  while ((rows + 1) * (rows + 1) <= ranks) {
    ++rows;
  }
  return {{}, {}, {rows, {}}, {ranks / rows, {}}};
}

// A group for each pair of first and last layer, cut as the entry of `cuts` with the same number
// says (the last entry for all that follow). Tiles lie on ranks from the highest down, so that rank
// 0 may well be idle.
[[nodiscard]] inline Partition partition_of(const Network& network,
                                            int ranks,
                                            const std::vector<std::pair<int, int>>& groups,
                                            const std::vector<Cuts>& cuts) {
  Partition partition;
  partition.network = fingerprint(network);
  partition.ranks = ranks;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const Cuts& cut = cuts[std::min(i, cuts.size() - 1)];
    Group group{
        groups[i].first, groups[i].second, cut.images, cut.channels, cut.rows, cut.cols, {}, {}};
    for (int tile = 0; tile < static_cast<int>(group.tiles()); ++tile) {
      group.ranks.push_back(ranks - 1 - tile);
    }
    partition.groups.push_back(group);
  }
  return partition;
}

// All layers in one group.
[[nodiscard]] inline Partition fused(const Network& network, int ranks, const Cuts& cuts) {
  return partition_of(network, ranks, {{0, network.size() - 1}}, {cuts});
}

}  // namespace tessera::tests
