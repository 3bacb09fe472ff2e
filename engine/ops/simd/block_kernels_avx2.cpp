// The inner loops for x86-64 with AVX2.

#include "engine/ops/simd/block_kernel_versions.h"

#if defined(__x86_64__)
#pragma GCC target("avx2,fma")

namespace tessera::engine::avx2 {

#include "engine/ops/simd/block_kernels.inl"
#include "engine/ops/simd/row_kernels.inl"

const BlockKernels<float> kSingle = kernels_of_width<float>();
const BlockKernels<double> kDouble = kernels_of_width<double>();
const RowKernels<float> kSingleRows = row_kernels_of_width<float>();
const RowKernels<double> kDoubleRows = row_kernels_of_width<double>();

}  // namespace tessera::engine::avx2

#endif
