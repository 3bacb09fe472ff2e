#include "engine/ops/parameters/half.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tessera::engine {

namespace {

// Both ways without branches, so that compilers make vector code of loops over them. A float has 23
// bits of fraction and a bias of 127, a half 10 and 15: 13 bits less, and 112 less.
constexpr std::uint32_t kBiasApart = 112U << 23U;
constexpr std::uint32_t kInfinity = 0x7f800000U;
constexpr float kLeastHalf = 0x1p-24F;  // all denormal halves are multiples of it

// All ones where a < b, both below 2^31.
inline std::uint32_t below(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(a - b) >> 31);
}

inline std::uint32_t select(std::uint32_t mask, std::uint32_t yes, std::uint32_t no) {
  return (mask & yes) | (~mask & no);
}

inline Half rounded(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  const std::uint32_t odd = (magnitude >> 13U) & 1U;
  const std::uint32_t normal = (magnitude - kBiasApart + 0xfffU + odd) >> 13U;
  // Beside 0.5, floats are as far apart as denormal halves are: the sum is rounded as they are.
  const float sum = std::bit_cast<float>(magnitude) + 0.5F;
  const std::uint32_t denormal = std::bit_cast<std::uint32_t>(sum) - 0x3f000000U;
  const std::uint32_t beyond = select(below(kInfinity, magnitude), 0x7e00U, 0x7c00U);
  const std::uint32_t finite = select(below(magnitude, 0x38800000U), denormal, normal);  // 2^-14
  const std::uint32_t half = select(below(magnitude, 0x47800000U), finite, beyond);      // 2^16
  return static_cast<Half>(half | ((bits >> 16U) & 0x8000U));
}

inline float restored(Half half) {
  const std::uint32_t magnitude = half & 0x7fffU;
  const std::uint32_t normal = (magnitude << 13U) + kBiasApart;
  const float least = static_cast<float>(static_cast<std::int32_t>(magnitude)) * kLeastHalf;
  const auto denormal = std::bit_cast<std::uint32_t>(least);
  const std::uint32_t beyond = (magnitude << 13U) | kInfinity;
  const std::uint32_t finite = select(below(magnitude, 0x400U), denormal, normal);
  const std::uint32_t bits = select(below(magnitude, 0x7c00U), finite, beyond);
  return std::bit_cast<float>(bits | ((half & 0x8000U) << 16U));
}

}  // namespace

template <class T>
float largest_magnitude(const T* values, Index count, float so_far) {
  // Magnitudes are in the order of their bits, and what is not a number lies beyond the infinite.
  auto most = std::bit_cast<std::int32_t>(so_far) & 0x7fffffff;
  for (Index i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<std::int32_t>(static_cast<float>(values[i])) & 0x7fffffff;
    most = std::max(most, bits);
  }
  return std::bit_cast<float>(most);
}

float half_unit(float largest) {
  if (!std::isfinite(largest) || largest == 0) {
    return 1;
  }
  constexpr int kTop = 14;              // exponent of the largest half
  constexpr int kLeastExponent = -126;  // of normal floats
  return std::ldexp(1.0F, std::max(std::ilogb(largest) - kTop, kLeastExponent));
}

template <class T>
void round_to_halves(float unit, Index count, T* values, Half* halves) {
  const float scale = 1 / unit;
  for (Index i = 0; i < count; ++i) {
    const Half half = rounded(static_cast<float>(values[i]) * scale);
    halves[i] = half;
    values[i] -= static_cast<T>(restored(half) * unit);
  }
}

template <class T>
void add_halves(float unit, const Half* halves, Index count, T* values) {
  for (Index i = 0; i < count; ++i) {
    values[i] += static_cast<T>(restored(halves[i]) * unit);
  }
}

template float largest_magnitude(const float*, Index, float);
template float largest_magnitude(const double*, Index, float);
template void round_to_halves(float, Index, float*, Half*);
template void round_to_halves(float, Index, double*, Half*);
template void add_halves(float, const Half*, Index, float*);
template void add_halves(float, const Half*, Index, double*);

}  // namespace tessera::engine
