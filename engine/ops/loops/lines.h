// Walking over a region of one or several blocked views, whatever the blocks: in runs of channels
// that lie side by side in all of them.

#pragma once

#include <algorithm>
#include <vector>

#include "engine/base/tensor.h"
#include "engine/ops/loops/threads.h"

namespace tessera::engine {

namespace lines {

// The channel after the last one that shares a block with `c` in the view.
template <class T>
[[nodiscard]] Index block_end(const View<T>& view, Index c) {
  const Index local = c - view.region.channels.begin;
  return view.region.channels.begin + (view.whole_blocks(local) + 1) * view.block;
}

}  // namespace lines

// Calls visit(run) for the runs of `channels` that are contiguous in every view.
template <class Visit, class... T>
void for_each_channel_run(const Range& channels, Visit visit, const View<T>&... views) {
  for (Index begin = channels.begin; begin < channels.end;) {
    const Index end = std::min({channels.end, lines::block_end(views, begin)...});
    visit(Range{begin, end});
    begin = end;
  }
}

template <class... T>
[[nodiscard]] std::vector<Range> channel_runs(const Range& channels, const View<T>&... views) {
  std::vector<Range> runs;
  for_each_channel_run(
      channels, [&](const Range& run) { runs.push_back(run); }, views...);
  return runs;
}

// What all lines of a run have in common, made once for each run.
template <class Value>
class RunValues {
 public:
  // Lines of make(run); `runs` must outlive it.
  template <class Make>
  RunValues(const std::vector<Range>& runs, Make make) : runs_(runs.data()) {
    for (const Range& run : runs) {
      values_.push_back(make(run));
    }
  }
  // `run` is one of those runs itself, as for_each_line() hands them out.
  const Value& operator[](const Range& run) const {
    return values_[static_cast<std::size_t>(&run - runs_)];
  }

 private:
  const Range* runs_;
  std::vector<Value> values_;
};

// Whether the view's blocks have `block` channels and the run is one of them, or all that there are
// of the last.
template <class T>
[[nodiscard]] bool is_whole_block(const Range& run, const View<T>& view, Index block) {
  const Index before = run.begin - view.region.channels.begin;
  return view.block == block && view.whole_blocks(before) * block == before &&
         (run.size() == block || run.end == view.region.channels.end);
}

// How many channels of a run a row kernel may touch: all of the block that it begins in each view,
// where nothing else lies in it.
template <class... T>
[[nodiscard]] Index channels_of_block(const Range& run, const View<T>&... views) {
  const Index block = std::max({views.block...});
  const bool whole = (... && is_whole_block(run, views, block));
  return whole ? block : run.size();
}

// Calls visit(l) for l in [0, channels), none of which looks at what another has written; whole
// blocks in a loop of fixed length, for the compiler's sake.
template <class Visit>
inline void for_each_channel(Index channels, Visit visit) {
  constexpr Index kWhole = 16;
  if (channels == kWhole) {
#pragma omp simd
    for (Index l = 0; l < kWhole; ++l) {
      visit(l);
    }
  } else {
    for (Index l = 0; l < channels; ++l) {
      visit(l);
    }
  }
}

// Calls visit(begin, count) over `count` things in runs as equal as can be of at most `most`.
template <class Visit>
void for_each_run(Index count, Index most, Visit visit) {
  const Index runs = (count + most - 1) / most;
  const Index longer = runs == 0 ? 0 : count % runs;  // so many have one more
  const Index least = runs == 0 ? 0 : count / runs;
  Index begin = 0;
  for (Index run = 0; run < runs; ++run) {
    const Index size = run < longer ? least + 1 : least;
    visit(begin, size);
    begin += size;
  }
}

// Calls visit(run, n, row) for each image, run and row of the region, in parallel, in no particular
// order.
template <class Visit>
void for_each_line(const Region& region, const std::vector<Range>& runs, Visit visit) {
  if (region.empty()) {  // whichever of its ranges is: there may be no memory behind the views
    return;
  }
  const Index run_count = static_cast<Index>(runs.size());
  const Range image_runs{region.images.begin * run_count, region.images.end * run_count};
  parallel_for(image_runs, region.rows, [&](Index number, Index row) {
    visit(runs[static_cast<std::size_t>(number % run_count)], number / run_count, row);
  });
}

// The cell of a view at the first channel of a run.
template <class T>
[[nodiscard]] T* line_start(const View<T>& view, const Range& run, Index n, Index row, Index col) {
  return view.cell(n, row, col) + view.channel_offset(run.begin);
}

}  // namespace tessera::engine
