// The inner loops for x86-64 with AVX2.

#include "engine/ops/lane_kernel_versions.h"

#if defined(__x86_64__)
#pragma GCC target("avx2,fma")

namespace engine::avx2 {

#include "engine/ops/lane_kernels.inl"
#include "engine/ops/row_kernels.inl"

}  // namespace engine::avx2

#endif
