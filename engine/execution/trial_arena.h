// Memory for what is tried out: one array for everything, as a step has one for its maps. A large
// array lies in large pages, and kernels are up to a fifth faster there; small arrays of their
// own would be slower than what they stand for.

#pragma once

#include <algorithm>
#include <vector>

#include "engine/tensor.h"
#include "partitioner/errors.h"

namespace engine {

class TrialArena {
 public:
  // Room for arrays of these sizes, in elements, to be taken in any order.
  explicit TrialArena(const std::vector<Index>& sizes) : values_(room_for(sizes)) {}

  // Zero until somebody writes to it; there as long as the arena is.
  [[nodiscard]] float* take(Index size) {
    const Index begin = taken_;
    taken_ += aligned(size);
    partitioner::expects(taken_ <= values_.size(), "a trial takes what it asked for");
    return values_.data() + begin;
  }
  [[nodiscard]] View<float> take(const Region& region) {
    return {take(partitioner::blocked_volume(region)),
            region,
            partitioner::channel_block(region.channels.size())};
  }

 private:
  static Index aligned(Index size) {
    constexpr Index kElements = kAlignment / sizeof(float);
    return (size + kElements - 1) / kElements * kElements;
  }
  static Index room_for(const std::vector<Index>& sizes) {
    constexpr Index kLeast = Index{1} << 20U;  // 4 MiB: enough for large pages
    Index sum = 0;
    for (const Index size : sizes) {
      sum += aligned(size);
    }
    return std::max(sum, kLeast);
  }

  Array<float> values_;
  Index taken_ = 0;
};

}  // namespace engine
