// The inner loops for 64-bit ARM processors that start instructions in order, as the Cortex-A53 of
// a Raspberry Pi 3 does. In single precision: double, which checks compute with, is generic.

#include "engine/ops/simd/block_kernel_versions.h"

#if defined(__aarch64__)
#pragma GCC target("tune=cortex-a53")

namespace tessera::engine::cortex_a53 {

#include "engine/ops/simd/block_kernels.inl"
#include "engine/ops/simd/block_kernels_in_order.inl"
#include "engine/ops/simd/row_kernels.inl"
#include "engine/ops/simd/row_kernels_in_order.inl"

const BlockKernels<float> kSingle = with_sums_in_order(kernels_of_width<float>());
const RowKernels<float> kSingleRows = with_rows_in_order(row_kernels_of_width<float>());

}  // namespace tessera::engine::cortex_a53

#endif
