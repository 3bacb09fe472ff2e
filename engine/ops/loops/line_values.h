// Per-channel sums over a region that do not depend on the number of threads.

#pragma once

#include <algorithm>
#include <array>

#include "engine/ops/loops/lines.h"
#include "engine/ops/loops/threads.h"
#include "engine/ops/simd/row_kernels.h"

namespace tessera::engine {

// What is said of each line's channels, (lines, channels): lines are summed apart and then added in
// their order, whichever thread had them.
template <class Value>
class LineValues {
 public:
  explicit LineValues(const Region& region)
      : region_(region),
        lines_(region.images.size() * region.rows.size()),
        values_(static_cast<std::size_t>(lines_ * region.channels.size())) {}

  // Those that line(run, n, row, values) assigns.
  template <class Line>
  void compute(const std::vector<Range>& runs, Line line) {
    for_each_line(region_, runs, [&](const Range& run, Index n, Index row) {
      std::array<Value, static_cast<std::size_t>(kMostChannels)> of_channels{};
      line(run, n, row, of_channels);
      put(run, n, row, of_channels.data());
    });
  }

  // The values of one line, one for each channel of the run.
  void put(const Range& run, Index n, Index row, const Value* of_channels) {
    const Index at = (n - region_.images.begin) * region_.rows.size() + row - region_.rows.begin;
    std::copy_n(of_channels,
                run.size(),
                values_.data() + at * region_.channels.size() + run.begin - region_.channels.begin);
  }

  // The total of each channel, by `add(total, value)`.
  template <class Add>
  [[nodiscard]] std::vector<Value> total(Add add) const {
    const Index channels = region_.channels.size();
    std::vector<Value> totals(static_cast<std::size_t>(channels));
    parallel_for({0, (channels + kMostChannels - 1) / kMostChannels}, [&](Index part) {
      const Index first = part * kMostChannels;
      const Index end = std::min(first + kMostChannels, channels);
      for (Index line = 0; line < lines_; ++line) {
        const Value* values = values_.data() + line * channels;
        for (Index c = first; c < end; ++c) {
          add(totals[static_cast<std::size_t>(c)], values[c]);
        }
      }
    });
    return totals;
  }

 private:
  Region region_;
  Index lines_;
  std::vector<Value> values_;
};

}  // namespace tessera::engine
