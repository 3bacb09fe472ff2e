// The loop of fma_peak.cpp, compiled once for each vector width: kWidth floats a vector, kSums
// vectors, as many as the machine has registers for and enough to hide how long a multiply-add
// takes.

using Lanes [[gnu::vector_size(kWidth * sizeof(float))]] = float;

// 2 * kWidth * kSums operations per step. What comes back only keeps the compiler from leaving it
// all out.
float multiply_add(Index steps, float factor, float term) {
  Lanes sums[kSums];
#pragma GCC unroll 32
  for (int i = 0; i < kSums; ++i) {
    sums[i] = Lanes{} + static_cast<float>(i);
  }
  for (Index step = 0; step < steps; ++step) {
#pragma GCC unroll 32
    for (int i = 0; i < kSums; ++i) {
      sums[i] = sums[i] * factor + term;
    }
  }
  Lanes total = {};
#pragma GCC unroll 32
  for (int i = 0; i < kSums; ++i) {
    total += sums[i];
  }
  return total[0];
}
