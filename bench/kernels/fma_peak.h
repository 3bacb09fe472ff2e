// What the machine's multiply-add units do at most: the roof of every kernel that multiplies by the
// definition.

#pragma once

namespace tessera::bench {

struct FmaPeak {
  int width = 0;  // floats of the widest vectors that this machine has, and this program knows
  double flops_per_s = 0;
};

// Multiply-adds in registers alone, on `threads` threads at once; the sum of the best of many short
// runs of each.
[[nodiscard]] FmaPeak measure_fma_peak(int threads);

}  // namespace tessera::bench
