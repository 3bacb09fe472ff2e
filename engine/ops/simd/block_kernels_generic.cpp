// The inner loops for any machine: what the compiler makes of them for its default target.

#include "engine/ops/simd/block_kernel_versions.h"

namespace tessera::engine::generic {

#include "engine/ops/simd/block_kernels.inl"
#include "engine/ops/simd/row_kernels.inl"

}  // namespace tessera::engine::generic
