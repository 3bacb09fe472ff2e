// The inner loops of block_kernels.h and row_kernels.h for each vector width. Only
// block_kernels.cpp includes this: it picks one.

#pragma once

#include <utility>

#include "engine/ops/simd/block_kernels.h"
#include "engine/ops/simd/row_kernels.h"

namespace tessera::engine {

// What suits the registers of a machine: kVectorBytes is what its vectors hold. More sums at once
// than registers go to the stack and back in every turn: tests/arm/inner_loops.sh shows that none
// do on 64-bit ARM.
namespace generic {
inline constexpr Index kVectorBytes = 16;
#if defined(__aarch64__)
inline constexpr Index kPixels = 5;         // of a direct sum at once: 32 registers
inline constexpr Index kNarrowPixels = 10;  // likewise of a narrow one
inline constexpr Index kTerms = 5;          // of a sum of outer products at once
inline constexpr Index kProductTerms = 4;   // likewise of Winograd's, of kProductChannels
inline constexpr Index kPlaneSums = 20;     // vectors of a sum whose lanes are pixels
inline constexpr Index kArgmaxSums = 12;    // likewise of gradients that a max-pool's argmax sends
inline constexpr Index kTwiceSums = 3;      // of kBlockChannels; fewer of these are kept twice
inline constexpr Index kDoubleShare = 2;    // of all these, of sums in double precision
#else
inline constexpr Index kPixels = 3;
inline constexpr Index kNarrowPixels = 6;
inline constexpr Index kTerms = 3;
inline constexpr Index kProductTerms = 2;
inline constexpr Index kPlaneSums = 12;
inline constexpr Index kArgmaxSums = 12;
inline constexpr Index kTwiceSums = 8;
inline constexpr Index kDoubleShare = 1;
inline constexpr bool kFlushes = false;  // smallest numbers to 0, by multiply-adds of vectors
#endif
inline constexpr Index kSumBlocks = 1;      // of output channels at once
inline constexpr Index kSquareBytes = 16;   // a row of the squares that are transposed
inline constexpr Index kCells = 4;          // of a depthwise convolution at once
inline constexpr Index kDepthwiseTaps = 5;  // at once, for the gradient of its weights
extern const BlockKernels<float> kSingle;
extern const BlockKernels<double> kDouble;
extern const RowKernels<float> kSingleRows;
extern const RowKernels<double> kDoubleRows;
}  // namespace generic

#if defined(__aarch64__)

// For processors that start instructions in order. Sums of terms have register tiles of their own
// (block_kernels_in_order.inl).
namespace cortex_a53 {
using namespace generic;  // NOLINT(google-build-using-namespace): all sizes but these
extern const BlockKernels<float> kSingle;
extern const RowKernels<float> kSingleRows;
}  // namespace cortex_a53

#else

namespace cortex_a53 = generic;

#endif

#if defined(__arm__) && defined(__ARM_PCS_VFP)

// Multiply-adds of NEON, in 16 registers. Vectors of sums leave room for those of weights and for
// numbers to multiply them by, which only the first eight registers can hold.
namespace neon {
using namespace generic;  // NOLINT(google-build-using-namespace): all sizes but these
inline constexpr Index kPixels = 2;
inline constexpr Index kTerms = 2;
inline constexpr bool kFlushes = true;
extern const BlockKernels<float> kSingle;
}  // namespace neon

#else

namespace neon = generic;

#endif

#if defined(__x86_64__)

namespace avx2 {
inline constexpr Index kVectorBytes = 32;
inline constexpr Index kPixels = 6;  // 16 registers
inline constexpr Index kNarrowPixels = 14;
inline constexpr Index kTerms = 4;
inline constexpr Index kProductTerms = 4;
inline constexpr Index kPlaneSums = 12;
inline constexpr Index kArgmaxSums = 12;
inline constexpr Index kTwiceSums = 8;
inline constexpr Index kDoubleShare = 1;
inline constexpr Index kSumBlocks = 1;
inline constexpr Index kSquareBytes = 32;
inline constexpr Index kCells = 4;
inline constexpr Index kDepthwiseTaps = 5;
extern const BlockKernels<float> kSingle;
extern const BlockKernels<double> kDouble;
extern const RowKernels<float> kSingleRows;
extern const RowKernels<double> kDoubleRows;
}  // namespace avx2

namespace avx512 {
inline constexpr Index kVectorBytes = 64;
inline constexpr Index kPixels = 14;  // 32 registers
inline constexpr Index kNarrowPixels = 14;
inline constexpr Index kTerms = 8;
inline constexpr Index kProductTerms = 8;
inline constexpr Index kPlaneSums = 24;
inline constexpr Index kArgmaxSums = 24;
inline constexpr Index kTwiceSums = 8;
inline constexpr Index kDoubleShare = 1;
inline constexpr Index kSumBlocks = 2;
inline constexpr Index kSquareBytes = 32;
inline constexpr Index kCells = 8;
inline constexpr Index kDepthwiseTaps = 9;
extern const BlockKernels<float> kSingle;
extern const BlockKernels<double> kDouble;
extern const RowKernels<float> kSingleRows;
extern const RowKernels<double> kDoubleRows;
}  // namespace avx512

#else

namespace avx2 = generic;
namespace avx512 = generic;

#endif

}  // namespace tessera::engine
