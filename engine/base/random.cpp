#include "engine/base/random.h"

#include <cmath>
#include <numbers>

namespace tessera::engine {

double random_normal(std::uint64_t seed, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  const std::uint64_t first = random_bits(seed, a, b, c);
  const std::uint64_t second = mix_bits(first + kGolden);
  const double radius =
      1.0 - static_cast<double>(first >> 11U) * 0x1.0p-53;  // (0, 1]: has a logarithm
  const double turn = static_cast<double>(second >> 11U) * 0x1.0p-53;
  return std::sqrt(-2.0 * std::log(radius)) * std::cos(2.0 * std::numbers::pi * turn);
}

}  // namespace tessera::engine
