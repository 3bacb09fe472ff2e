// Memory for what is tried out: one array for everything, as a step has one for its maps. A large
// array lies in large pages, and kernels are up to a fifth faster there; small arrays of their
// own would be slower than what they stand for.

#pragma once

#include <algorithm>
#include <vector>

#include "engine/base/tensor.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

// So many elements, rounded up so that what follows them lies aligned.
[[nodiscard]] inline Index aligned_elements(Index count) {
  constexpr Index kElements = kAlignment / sizeof(float);
  return (count + kElements - 1) / kElements * kElements;
}

// A view of the map that lies there.
[[nodiscard]] inline View<float> trial_view(float* cells, const Region& region) {
  return {cells, region, channel_block(region.channels.size())};
}

class TrialArena {
 public:
  // Room for arrays of these sizes, in elements, to be taken in any order.
  explicit TrialArena(const std::vector<Index>& sizes) : values_(room_for(sizes)) {}

  // Zero until somebody writes to it; there as long as the arena is.
  [[nodiscard]] float* take(Index size) {
    const Index begin = taken_;
    taken_ += aligned_elements(size);
    expects(taken_ <= values_.size(), "a trial takes what it asked for");
    return values_.data() + begin;
  }
  [[nodiscard]] View<float> take(const Region& region) {
    return trial_view(take(blocked_volume(region)), region);
  }

 private:
  static Index room_for(const std::vector<Index>& sizes) {
    constexpr Index kLeast = Index{1} << 20U;  // 4 MiB: enough for large pages
    Index sum = 0;
    for (const Index size : sizes) {
      sum += aligned_elements(size);
    }
    return std::max(sum, kLeast);
  }

  Array<float> values_;
  Index taken_ = 0;
};

}  // namespace tessera::engine
