// The sums of convolutions for 32-bit ARM with NEON, in single precision. Its multiply-adds take
// the smallest numbers, below 2^-126, for 0: with all others they have the bits of the generic
// loops.

#include "engine/ops/simd/block_kernel_versions.h"

#if defined(__arm__) && defined(__ARM_PCS_VFP)
#pragma GCC target("fpu=neon")

namespace tessera::engine::neon {

#include "engine/ops/simd/block_kernels.inl"

namespace {

// Half the channels of more pixels at a time: each weight is loaded for more of them.
void sum_halves(const WeightedSum<float>& job, Index pixels, Index /*blocks*/) {
  constexpr Index kTaps = 16;  // whose weights' second halves have a place
  narrow_sum_any<float>(job, pixels);
  WeightedSum<float> half = job;
  half.start = job.start == nullptr ? nullptr : job.start + kNarrowChannels;
  half.sums += kNarrowChannels;
  Index first = 0;
  do {
    Tap<float> taps[kTaps];
    half.taps = taps;
    half.tap_count = job.tap_count - first < kTaps ? job.tap_count - first : kTaps;
    for (Index i = 0; i < half.tap_count; ++i) {
      taps[i] = {job.taps[first + i].offset, job.taps[first + i].weights + kNarrowChannels};
    }
    narrow_sum_any<float>(half, pixels);
    half.start = nullptr;
    first += kTaps;
  } while (first < job.tap_count);
}

constexpr BlockKernels<float> kernels_of_neon() {
  BlockKernels<float> kernels = kernels_of_width<float>();
  kernels.sum_pixels = kernels.narrow_pixels;
  kernels.weighted_sum = sum_halves;
  return kernels;
}

}  // namespace

const BlockKernels<float> kSingle = kernels_of_neon();

}  // namespace tessera::engine::neon

#endif
