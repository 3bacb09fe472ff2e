// How long something takes, done again and again.

#pragma once

#include <algorithm>
#include <vector>

#include "engine/base/median.h"
#include "engine/system/clock.h"

namespace tessera::engine {

// What a sample takes at least, where there is time.
inline constexpr double kSampleSeconds = 0.04;

// The median of up to five samples, in about `allowed_s`, at least two calls of `work`: the first
// one does not count (page faults, cold caches). A sample is the mean of as many calls as take some
// hundredths of a second, so that devices which are given a share of a processor now and then are
// measured more as they are on average. Seconds are those of `clock`.
template <class Work>
[[nodiscard]] double median_seconds(double allowed_s, Work work, double (*clock)() = now_s) {
  constexpr std::size_t kMostSamples = 5;
  const double start = now_s();
  work();
  const double sample_s = std::min(kSampleSeconds, allowed_s / kMostSamples);
  std::vector<double> samples;
  double last_s = 0;
  while (samples.empty() ||
         (samples.size() < kMostSamples && now_s() - start + last_s < allowed_s)) {
    const double begin = now_s();
    const double clock_begin = clock();
    int calls = 0;
    do {
      work();
      ++calls;
      last_s = now_s() - begin;
    } while (last_s < sample_s);
    samples.push_back((clock() - clock_begin) / calls);
  }
  return median(samples);
}

}  // namespace tessera::engine
