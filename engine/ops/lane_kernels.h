// The two inner loops of every convolution, on vectors of kLanes output channels. Everything around
// them only works out which numbers meet.
//
// A sum's order is the order of its terms, whatever the number of pixels done at once and whatever
// the machine's vector width: a cell computed by two ranks has the same bits on both.

#pragma once

#include "engine/tensor.h"

namespace engine {

inline constexpr Index kLanes = 16;

// Part of a weighted sum: terms read at `offset` from the pixel, with kLanes weights each.
template <class T>
struct Tap {
  Index offset = 0;
  const T* weights = nullptr;  // (terms, kLanes), aligned to kAlignment
};

// sums[p][lane] = sum over taps, then over terms t, of tap.weights[t][lane] * in[p * in_step +
// tap.offset + offsets[t]]
template <class T>
struct WeightedSum {
  const T* in = nullptr;
  Index in_step = 0;  // elements from pixel to pixel
  const Tap<T>* taps = nullptr;
  Index tap_count = 0;
  const Index* offsets = nullptr;
  Index terms = 0;
  T* sums = nullptr;  // (pixels, kLanes), aligned
};

// The most pixels that one call of weighted_sum takes for pixels `in_step` apart.
[[nodiscard]] Index pixels_at_once(Index in_step);

// Assigns job.sums; 1 <= pixels <= pixels_at_once(job.in_step).
void weighted_sum(const WeightedSum<float>& job, Index pixels);
void weighted_sum(const WeightedSum<double>& job, Index pixels);

inline constexpr Index kOuterTerms = 8;

// sums[t][lane] += sum over pixels, row by row, of gradient[lane] * in[offsets[t]]
template <class T>
struct OuterSum {
  const T* gradient =
      nullptr;  // kLanes output channels of the first pixel, aligned; pixels are kLanes apart
  Index gradient_row = 0;  // elements from row to row
  const T* in = nullptr;
  Index in_row = 0;
  Index in_step = 0;
  Index rows = 0;
  Index cols = 0;
  const Index* offsets = nullptr;
  T* sums = nullptr;  // (terms, kLanes), aligned
};

// Adds to job.sums; 1 <= terms <= kOuterTerms.
void outer_sum(const OuterSum<float>& job, Index terms);
void outer_sum(const OuterSum<double>& job, Index terms);

}  // namespace engine
