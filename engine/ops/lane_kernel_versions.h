// The inner loops of lane_kernels.h for each vector width. Only lane_kernels.cpp includes this: it
// picks one.

#pragma once

#include "engine/ops/lane_kernels.h"

namespace engine {

namespace generic {
inline constexpr Index kDensePixels = 6;  // accumulators that 16 or 32 narrow registers hold
inline constexpr Index kPixels = 6;
void sum(const WeightedSum<float>& job, Index pixels);
void sum(const WeightedSum<double>& job, Index pixels);
void outer(const OuterSum<float>& job, Index terms);
void outer(const OuterSum<double>& job, Index terms);
}  // namespace generic

namespace avx2 {
inline constexpr Index kDensePixels = 6;
inline constexpr Index kPixels = 6;
void sum(const WeightedSum<float>& job, Index pixels);
void sum(const WeightedSum<double>& job, Index pixels);
void outer(const OuterSum<float>& job, Index terms);
void outer(const OuterSum<double>& job, Index terms);
}  // namespace avx2

namespace avx512 {
inline constexpr Index kDensePixels = 14;  // 32 wide registers
inline constexpr Index kPixels = 6;        // as many addresses as fit the other registers
void sum(const WeightedSum<float>& job, Index pixels);
void sum(const WeightedSum<double>& job, Index pixels);
void outer(const OuterSum<float>& job, Index terms);
void outer(const OuterSum<double>& job, Index terms);
}  // namespace avx512

}  // namespace engine
