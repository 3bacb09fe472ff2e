// Memory for what is tried out again and again. A step comes back to a map only when it has passed
// over all others, and finds it in no cache; a trial that repeats would find it in one. So a trial
// goes through an array that is larger than most caches, one place after the other.

#pragma once

#include <algorithm>
#include <unistd.h>

#include "engine/base/tensor.h"
#include "engine/probe/trial_arena.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

// Elements that no cache holds.
[[nodiscard]] inline Index cold_elements() {
  constexpr Index kSmall = Index{2} << 20U;  // 8 MiB: no third level
  constexpr Index kLarge = Index{8} << 20U;  // 32 MiB
  return ::sysconf(_SC_LEVEL3_CACHE_SIZE) > 0 ? kLarge : kSmall;
}

// Numbers of which a trial takes some at a time. One array for everything, as a step has one for
// its maps: a large array lies in large pages, and kernels are up to a fifth faster there.
class ColdArray {
 public:
  // cold_elements(), but at most `most`; never so few that they would not lie in large pages.
  [[nodiscard]] static Index elements(Index most) {
    constexpr Index kLeast = Index{1} << 20U;  // 4 MiB
    return std::max(std::min(cold_elements(), most), kLeast);
  }

  explicit ColdArray(Index elements) : values_(elements) {}

  // Makes the array long enough for `size` elements; whether that changed it: it is zero then.
  bool fit(Index size) {
    if (aligned_elements(size) <= values_.size()) {
      return false;
    }
    values_ = {};  // gone before the next one is there
    values_ = Array<float>(aligned_elements(size));
    return true;
  }

  // Another `size` elements than the last times, as far as there are.
  [[nodiscard]] float* next(Index size) {
    expects(aligned_elements(size) <= values_.size(), "a trial takes what it asked for");
    const Index begin = next_ + aligned_elements(size) <= values_.size() ? next_ : 0;
    next_ = begin + aligned_elements(size);
    return values_.data() + begin;
  }
  [[nodiscard]] View<float> next(const Region& region) {
    return trial_view(next(blocked_volume(region)), region);
  }

  [[nodiscard]] std::span<float> all() { return values_.span(); }

 private:
  Array<float> values_;
  Index next_ = 0;
};

}  // namespace tessera::engine
