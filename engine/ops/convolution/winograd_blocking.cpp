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

PassBytes::PassBytes(Index side, Index ins, Index outs, Index scalar_bytes, Index moves)
    : in_blocks(blocks_of(ins)),
      out_blocks(blocks_of(outs)),
      block(positions_of(side) * kBlockChannels * scalar_bytes),
      cells(side * side * kBlockChannels * scalar_bytes),
      filters(block * in_blocks * out_blocks * kBlockChannels),
      filter_moves(moves) {}

// A batch that the cache does not hold moves its tiles and sums three times: the cache first reads
// what was where they are written, they are written, and read again. One that it holds beside one
// block's filters is smaller, so filters come from memory more often. By inputs, sums go to the
// cache and back for each block of them: where there is another way to hold a batch, that is
// better.
Blocking blocking_in_cache(const Blocking& planned, const PassBytes& pass, Index cache_bytes) {
  const Index room = cache_bytes / 8 * 7;  // what else is read and written has the rest
  const Index filters_met = planned.part_blocks * planned.part_channels * pass.block;
  const Index tiles_held = planned.tiles * (pass.in_blocks + planned.part_blocks) * pass.block;
  if (!planned.kept || filters_met + tiles_held <= room) {
    return planned;
  }
  const Index tile = (pass.in_blocks + pass.out_blocks) * pass.block;
  const Index moved = pass.filter_moves * pass.filters;
  const Index moved_as_planned = 3 * tile + moved / planned.tiles;  // for a tile
  for (const bool by_inputs : {false, true}) {
    if (by_inputs && pass.filter_moves > 1) {
      continue;
    }
    // All blocks of one, one block of the other and the filters that it meets.
    const Index all = by_inputs ? pass.out_blocks : pass.in_blocks;
    const Index filters = all * pass.block * kBlockChannels;
    const Index of_tile = (all + 1) * pass.block + pass.cells;
    const Index tiles = std::min((room - filters) / of_tile, planned.tiles);
    if (tiles >= kFewestTilesOfTeam && moved / tiles < moved_as_planned) {
      Blocking blocking = planned;
      blocking.tiles = tiles;
      blocking.part_blocks = by_inputs ? pass.out_blocks : 1;
      blocking.together = true;
      blocking.by_inputs = by_inputs;
      return blocking;
    }
  }
  return planned;
}

Index most_teams(const Blocking& blocking) {
  return blocking.kept ? std::clamp<Index>(blocking.tiles / kFewestTilesOfTeam, 1, kMostTeams) : 1;
}

Index teams_of(const Blocking& blocking) {
  return !blocking.together && threads() <= most_teams(blocking) ? threads() : 1;
}

Index sum_runs(const Blocking& blocking, Index side, Index tiles) {
  const Index elements = positions_of(side) * blocking.blocks * kBlockChannels * blocking.channels;
  const Index room = blocking.kept ? kSumElements / std::max<Index>(elements, 1) : 1;
  const Index most = std::min({room, kMostSumRuns, tiles / kMostTiles});
  return most >= kMostSumRuns ? kMostSumRuns : std::clamp<Index>(most, 1, 2);
}

}  // namespace tessera::engine
