#include "engine/ops/convolution/winograd_blocking.h"

namespace tessera::engine {

namespace {

// Elements of filters that are in work at once: few enough to stay in a cache of the second level
// beside the tiles that they meet. Of more, the parts that tiles meet stay there, one after the
// other: batches of tiles are larger then.
constexpr Index kFilterElements = Index{5} << 16U;
constexpr Index kPartBlocks = 2 * kMostBlocks;
constexpr Index kPartChannels = 4 * kBlockChannels;
constexpr Index kPartArrays = 2;
constexpr Index kTileElements = Index{1} << 21U;
constexpr Index kFewestTiles = 14;
constexpr Index kMostTiles = 56;
constexpr Index kMostTilesOfParts = 224;

// A team reads all filters for each batch of its tiles: of fewer it would make too little.
constexpr Index kFewestTilesOfTeam = 7;
constexpr Index kMostTeams = 16;
constexpr Index kMostSumRuns = 4;
constexpr Index kSumElements = Index{5} << 17U;  // of gradients of filters, of all runs

}  // namespace

Blocking blocking_of(Index side, Index ins, Index outs, Index tiles) {
  const Index per_tile = positions_of(side) * kBlockChannels;  // and block
  const Index blocks = blocks_of(outs);
  const Index channels = blocks_of(ins) * kBlockChannels;
  const bool whole = partitioner::winograd_filter_elements(side, ins, outs) <= kFilterElements;
  Blocking blocking;
  blocking.kept = partitioner::keeps_winograd_filters(side, ins, outs);
  blocking.part_blocks = whole ? blocks : std::min(blocks, kPartBlocks);
  blocking.part_channels = whole ? channels : std::min(channels, kPartChannels);
  blocking.blocks = blocking.kept ? blocks : blocking.part_blocks;
  blocking.channels = blocking.kept ? channels : blocking.part_channels;
  blocking.arrays = blocking.kept || blocking.part_blocks == blocks ? 1 : kPartArrays;
  const Index most =
      std::clamp(kTileElements / (per_tile * (blocks_of(ins) + blocking.part_blocks)),
                 kFewestTiles,
                 whole ? kMostTiles : kMostTilesOfParts);
  blocking.tiles = std::min(most, tiles);
  return blocking;
}

Index most_teams(const Blocking& blocking) {
  return blocking.kept ? std::clamp<Index>(blocking.tiles / kFewestTilesOfTeam, 1, kMostTeams) : 1;
}

Index sum_runs(const Blocking& blocking, Index side, Index tiles) {
  const Index elements = positions_of(side) * blocking.blocks * kBlockChannels * blocking.channels;
  const Index room = blocking.kept ? kSumElements / std::max<Index>(elements, 1) : 1;
  const Index most = std::min({room, kMostSumRuns, tiles / kMostTiles});
  return most >= kMostSumRuns ? kMostSumRuns : std::clamp<Index>(most, 1, 2);
}

}  // namespace tessera::engine
