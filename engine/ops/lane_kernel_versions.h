// The inner loops of lane_kernels.h and row_kernels.h for each vector width. Only lane_kernels.cpp
// includes this: it picks one.

#pragma once

#include <utility>

#include "engine/ops/lane_kernels.h"
#include "engine/ops/row_kernels.h"

namespace engine {

namespace generic {
inline constexpr Index kPixels = 6;         // accumulators that 16 or 32 narrow registers hold
inline constexpr Index kSquareBytes = 16;   // a row of the squares that are transposed
inline constexpr Index kCells = 4;          // of a depthwise convolution at once
inline constexpr Index kDepthwiseTaps = 5;  // at once, for the gradient of its weights
inline constexpr Index kSumBlocks = 1;      // more would not fit the registers
inline constexpr Index kProductPixels = 3;  // of two blocks at once
extern const LaneKernels<float> kSingle;
extern const LaneKernels<double> kDouble;
extern const RowKernels<float> kSingleRows;
extern const RowKernels<double> kDoubleRows;
}  // namespace generic

#if defined(__x86_64__)

namespace avx2 {
inline constexpr Index kPixels = 6;
inline constexpr Index kSquareBytes = 32;
inline constexpr Index kCells = 4;
inline constexpr Index kDepthwiseTaps = 5;
inline constexpr Index kSumBlocks = 1;  // more would not fit the registers
inline constexpr Index kProductPixels = 3;
extern const LaneKernels<float> kSingle;
extern const LaneKernels<double> kDouble;
extern const RowKernels<float> kSingleRows;
extern const RowKernels<double> kDoubleRows;
}  // namespace avx2

namespace avx512 {
inline constexpr Index kPixels = 14;  // 32 wide registers
inline constexpr Index kSquareBytes = 32;
inline constexpr Index kCells = 8;
inline constexpr Index kDepthwiseTaps = 9;
inline constexpr Index kSumBlocks = 2;
inline constexpr Index kProductPixels = 14;
extern const LaneKernels<float> kSingle;
extern const LaneKernels<double> kDouble;
extern const RowKernels<float> kSingleRows;
extern const RowKernels<double> kDoubleRows;
}  // namespace avx512

#else

namespace avx2 = generic;
namespace avx512 = generic;

#endif

}  // namespace engine
