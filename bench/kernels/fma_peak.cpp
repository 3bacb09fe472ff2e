#include "bench/kernels/fma_peak.h"

#include <algorithm>
#include <chrono>

#include "engine/base/tensor.h"

namespace tessera::bench {

namespace generic {
constexpr int kWidth = 4;
constexpr int kSums = 12;
#include "bench/kernels/fma_peak.inl"
}  // namespace generic

#if defined(__x86_64__)

#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace avx2 {
constexpr int kWidth = 8;
constexpr int kSums = 12;
#include "bench/kernels/fma_peak.inl"
}  // namespace avx2
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f")
namespace avx512 {
constexpr int kWidth = 16;
constexpr int kSums = 24;
#include "bench/kernels/fma_peak.inl"
}  // namespace avx512
#pragma GCC pop_options

#endif

namespace {

constexpr Index kSteps = 1 << 14;  // a tenth of a millisecond: seldom interrupted
constexpr int kRuns = 1000;

struct Version {
  int width = generic::kWidth;
  int sums = generic::kSums;
  float (*run)(Index steps, float factor, float term) = generic::multiply_add;
};

Version widest() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") > 0) {
    return {avx512::kWidth, avx512::kSums, avx512::multiply_add};
  }
  if (__builtin_cpu_supports("avx2") > 0 && __builtin_cpu_supports("fma") > 0) {
    return {avx2::kWidth, avx2::kSums, avx2::multiply_add};
  }
#endif
  return {};
}

// The best of many runs on this thread.
double best_flops_per_s(const Version& version) {
  using Clock = std::chrono::steady_clock;
  double least_s = 1e9;
  volatile float sink = 0;
  for (int run = 0; run < kRuns; ++run) {
    const Clock::time_point begin = Clock::now();
    sink = version.run(kSteps, 0.5F, 0.5F);
    least_s = std::min(least_s, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  (void)sink;
  return 2.0 * version.width * version.sums * static_cast<double>(kSteps) / least_s;
}

}  // namespace

FmaPeak measure_fma_peak(int threads) {
  const Version version = widest();
  double sum = 0;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(+ : sum)
  for (int thread = 0; thread < threads; ++thread) {
    sum += best_flops_per_s(version);
  }
  return {version.width, sum};
}

}  // namespace tessera::bench
