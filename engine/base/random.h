// Random numbers by position, not from a stream: the same (seed, a, b, c) gives the same number on
// any rank, in any order, for any partition. Weights, dropout and augmentation are all drawn from
// here; a, b, c are what names the draw globally (a layer and the index of a weight; a step, the
// position of a picture and the number of the draw).
//
// Each argument in turn is the position in a SplitMix64 stream (Steele, Lea, Flood, "Fast
// splittable pseudorandom number generators", OOPSLA 2014, with Stafford's mix 13) whose seed is
// the number drawn so far. The values are fixed by a test and never change.

#pragma once

#include <cstdint>

namespace tessera::engine {

inline constexpr std::uint64_t kGolden =
    0x9e3779b97f4a7c15U;  // 2^64 / golden ratio, the step of the stream

// The output function of SplitMix64, a bijection.
[[nodiscard]] constexpr std::uint64_t mix_bits(std::uint64_t x) {
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

// Inline, so that the part that does not change in a loop over c is computed once.
[[nodiscard]] constexpr std::uint64_t random_bits(std::uint64_t seed,
                                                  std::uint64_t a,
                                                  std::uint64_t b = 0,
                                                  std::uint64_t c = 0) {
  std::uint64_t bits = mix_bits(seed + kGolden);
  bits = mix_bits(bits + (a + 1) * kGolden);
  bits = mix_bits(bits + (b + 1) * kGolden);
  return mix_bits(bits + (c + 1) * kGolden);
}

// Uniform in [0, 1): the upper 53 bits, so every value is exact on every machine.
[[nodiscard]] constexpr double random_uniform(std::uint64_t seed,
                                              std::uint64_t a,
                                              std::uint64_t b = 0,
                                              std::uint64_t c = 0) {
  return static_cast<double>(random_bits(seed, a, b, c) >> 11U) * 0x1.0p-53;
}

// Mean 0, variance 1, by Box and Muller from two draws. Logarithm and cosine are the C library's,
// so machines with different libraries may differ in the last bit.
[[nodiscard]] double random_normal(std::uint64_t seed,
                                   std::uint64_t a,
                                   std::uint64_t b = 0,
                                   std::uint64_t c = 0);

}  // namespace tessera::engine
