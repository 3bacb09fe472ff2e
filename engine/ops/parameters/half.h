// Numbers in 16 bits, IEEE 754 binary16, together with a power of two that they share: so their
// range is that of what they stand for, and rounding is relative to the largest of them.

#pragma once

#include <cstdint>

#include "partitioner/base/region.h"

namespace tessera::engine {

// Rounded to nearest, ties to even; values from 65520 up become infinity; NaN stays NaN.
using Half = std::uint16_t;

// The largest magnitude of `count` values and of `so_far`; infinite or no number if one of them is.
template <class T>
[[nodiscard]] float largest_magnitude(const T* values, Index count, float so_far);

// What 1 stands for in halves whose largest magnitude is to be `largest`: a power of two, by which
// it comes to lie below 2^15. 1 where `largest` is 0, infinite or no number.
[[nodiscard]] float half_unit(float largest);

// halves = values / unit, rounded; values = what rounding has left.
template <class T>
void round_to_halves(float unit, Index count, T* values, Half* halves);

// values += halves * unit
template <class T>
void add_halves(float unit, const Half* halves, Index count, T* values);

}  // namespace tessera::engine
