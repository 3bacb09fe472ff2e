// The inner loops for any machine: what the compiler makes of them for its default target.

#include "engine/ops/simd/block_kernel_versions.h"

namespace tessera::engine::generic {

#include "engine/ops/simd/block_kernels.inl"
#include "engine/ops/simd/row_kernels.inl"

const BlockKernels<float> kSingle = kernels_of_width<float>();
const BlockKernels<double> kDouble = kernels_of_width<double>();
const RowKernels<float> kSingleRows = row_kernels_of_width<float>();
const RowKernels<double> kDoubleRows = row_kernels_of_width<double>();

}  // namespace tessera::engine::generic
