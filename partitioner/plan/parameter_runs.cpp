#include "partitioner/plan/parameter_runs.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "partitioner/plan/transfers.h"

namespace tessera::partitioner {

std::vector<SharedRun> shared_runs(const ParameterShape& shape, const std::vector<Tile>& tiles) {
  std::vector<Index> ends{0, shape.channels};
  for (const Tile& tile : tiles) {
    const Range channels = channels_of(tile.computed);
    if (!channels.empty()) {
      ends.insert(ends.end(), {channels.begin, channels.end});
    }
  }
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  std::vector<SharedRun> runs;
  for (auto end = std::next(ends.begin()); end != ends.end(); ++end) {
    const Range channels{*std::prev(end), *end};
    SharedRun run;
    run.begin = channels.begin * shape.row;
    for (std::size_t rank = 0; rank < tiles.size(); ++rank) {
      if (!intersect(channels_of(tiles[rank].computed), channels).empty()) {
        run.ranks.push_back(static_cast<int>(rank));
      }
    }
    const auto parts = static_cast<Index>(run.ranks.size());
    const Index elements = channels.size() * shape.row;
    for (Index i = 0; i < parts; ++i) {
      run.shares.push_back(elements * (i + 1) / parts - elements * i / parts);
    }
    runs.push_back(std::move(run));
  }
  return runs;
}

}  // namespace tessera::partitioner
