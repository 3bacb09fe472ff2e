// How Winograd's kernels go through a map: in batches of tiles and, for each, through parts of the
// filters; and what each thread does of it. Only winograd.cpp and winograd_weights.cpp include
// this.

#pragma once

#include <algorithm>

#include "engine/ops/convolution/winograd_tiles.h"
#include "engine/ops/simd/cache_blocks.h"
#include "partitioner/partition/kernels.h"

namespace tessera::engine {

// A convolution goes through batches of tiles and, for each, through parts of its filters: some
// outputs' channels and, for these, one run of inputs' channels after the other.
struct Blocking {
  Index tiles = 0;          // of a batch
  Index part_blocks = 0;    // of outputs, of a part
  Index part_channels = 0;  // of inputs, of a part
  bool kept = true;         // whether there is room for all filters, or for a part
  Index blocks = 0;         // of outputs that there is room for
  Index channels = 0;       // of inputs that there is room for
  Index arrays = 1;         // such rooms, and rooms for sums, where parts come one after the other
  bool together = false;    // threads are one team, which goes through filters once for a batch
  bool by_inputs = false;   // one block of inputs after the other, all sums of a batch at once
};

// For a grid of `tiles` tiles, the same on all machines: memory is planned with it.
[[nodiscard]] Blocking blocking_of(Index side, Index ins, Index outs, Index tiles);

// Bytes of what a pass computes.
struct PassBytes {
  Index in_blocks = 0;  // a count, as out_blocks
  Index out_blocks = 0;
  Index block = 0;         // of a tile or its sums, transformed
  Index cells = 0;         // of a tile in a map, likewise of a block
  Index filters = 0;       // all of them
  Index filter_moves = 0;  // how often a batch moves all filters to or from memory

  PassBytes(Index side, Index ins, Index outs, Index scalar_bytes, Index moves);
};

// What a pass does of it, in no more room and with the same bits: where cores share a cache, a
// batch is as many tiles as stay there with their sums of one block of outputs, or of one block of
// inputs with all sums, if less comes from memory then. `cache_bytes`: of that cache; 0 if there is
// none.
[[nodiscard]] Blocking blocking_in_cache(const Blocking& planned,
                                         const PassBytes& pass,
                                         Index cache_bytes);

// Threads work in teams, each on tiles of its own: another processor's come late. This is the most
// teams that there is room for, whatever the number of threads: memory is planned without it.
[[nodiscard]] Index most_teams(const Blocking& blocking);

// Of a pass with as many threads as this rank has.
[[nodiscard]] Index teams_of(const Blocking& blocking);

// Calls visit(Range) for runs of at most `most` channels that together are `channels`.
template <class Visit>
void for_each_part(Index most, const Range& channels, Visit visit) {
  for (Index begin = channels.begin; begin < channels.end; begin += most) {
    visit(Range{begin, std::min(begin + most, channels.end)});
  }
}

// Gradients of filters are summed over so many runs of the tiles apart and then added up in order,
// however many teams there are: they have the same bits for any number of threads.
[[nodiscard]] Index sum_runs(const Blocking& blocking, Index side, Index tiles);

// Number `share` of `shares` shares as equal as can be.
[[nodiscard]] inline Range share_of(Index share, Index shares, Index count) {
  return {count * share / shares, count * (share + 1) / shares};
}

// Calls work(team) for each of `teams` teams: by all threads at once if it is one, else by one
// thread each.
template <class Work>
void run_teams(Index teams, Work work) {
  if (teams == 1) {
    run_team([&] { work(Index{0}); });
    return;
  }
  const int threads = static_cast<int>(teams);
#pragma omp parallel for schedule(static, 1) num_threads(threads)
  for (Index team = 0; team < teams; ++team) {
#pragma omp parallel num_threads(1)  // what a team shares out, this thread does by itself
    work(team);
  }
}

// Calls work(channels, team) for the parts of `channels`, each team some of them.
template <class Work>
void run_part_teams(const Blocking& blocking, Index teams, const Range& channels, Work work) {
  const Index size = blocking.part_blocks * kBlockChannels;
  const Index parts = (channels.size() + size - 1) / size;
  run_teams(teams, [&](Index team) {
    const Range own = share_of(team, teams, parts);
    const Range of_team{channels.begin + own.begin * size,
                        std::min(channels.begin + own.end * size, channels.end)};
    for_each_part(size, of_team, [&](const Range& part) { work(part, team); });
  });
}

// Scratch of a pass: an array of filters, or some of gradients of filters, then for each team tiles
// and sums (or gradients) of one batch.
template <class T>
class WinogradScratch {
 public:
  WinogradScratch(T* workspace, Index side, const Blocking& blocking, Index in_blocks)
      : workspace_(workspace),
        positions_(positions_of(side)),
        in_blocks_(in_blocks),
        blocking_(blocking) {}

  // Elements for so many arrays of filters and any number of teams that there is room for.
  [[nodiscard]] Index elements(Index filter_arrays) const {
    const Index per_tile = (in_blocks_ + blocking_.arrays * blocking_.part_blocks) * kBlockChannels;
    const Index padding = most_teams(blocking_) * (1 + blocking_.arrays) * kBlockChannels;
    return filter_arrays * filter_elements() + positions_ * (blocking_.tiles * per_tile + padding);
  }

  [[nodiscard]] TransformedFilters<T> filters(Index array = 0) const {
    return {workspace_ + array * filter_elements(), blocking_.blocks, blocking_.channels};
  }

  // Where a part of the filters lies, counted from the first output and input on.
  [[nodiscard]] TransformedFilters<T> part(Index array, Index out, Index in) const {
    TransformedFilters<T> there = filters(array);
    if (blocking_.kept) {
      there.data = there.at(0, out / kBlockChannels, in);
    }
    return there;
  }

  // The tiles of a batch of one of `teams` teams, behind `filter_arrays` arrays of filters.
  [[nodiscard]] TransformedTiles<T> tiles(Index filter_arrays, Index team, Index teams) const {
    const Index batch = blocking_.tiles / teams;
    const Index stride =
        TransformedTiles<T>{nullptr, in_blocks_, batch}.position_stride() +
        TransformedTiles<T>{nullptr, blocking_.part_blocks, batch}.position_stride();
    T* first = workspace_ + filter_arrays * filter_elements();
    return {first + team * positions_ * stride, in_blocks_, batch};
  }

  // Behind the tiles of a batch: sums, or gradients, of `blocks` blocks of outputs.
  [[nodiscard]] TransformedTiles<T> sums(const TransformedTiles<T>& tiles,
                                         Index blocks,
                                         Index array = 0) const {
    const TransformedTiles<T> of_part{nullptr, blocking_.part_blocks, tiles.tiles};
    T* first = tiles.at(positions_, 0, 0);
    return {first + array * positions_ * of_part.position_stride(), blocks, tiles.tiles};
  }

  [[nodiscard]] Index filter_elements() const {
    return positions_ *
           TransformedFilters<T>{nullptr, blocking_.blocks, blocking_.channels}.position_stride();
  }

 private:
  T* workspace_;
  Index positions_;
  Index in_blocks_;
  Blocking blocking_;
};

}  // namespace tessera::engine
