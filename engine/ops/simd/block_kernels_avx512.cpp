// The inner loops for x86-64 with AVX-512.

#include "engine/ops/simd/block_kernel_versions.h"

#if defined(__x86_64__)
#pragma GCC target("avx512f,avx2,fma")

namespace tessera::engine::avx512 {

#include "engine/ops/simd/block_kernels.inl"
#include "engine/ops/simd/row_kernels.inl"

}  // namespace tessera::engine::avx512

#endif
