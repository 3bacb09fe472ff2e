#include "engine/ops/lane_kernels.h"

#include "engine/ops/lane_kernel_versions.h"

namespace engine {

namespace {

enum class VectorWidth { Generic, Avx2, Avx512 };

VectorWidth widest() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") > 0) {
    return VectorWidth::Avx512;
  }
  if (__builtin_cpu_supports("avx2") > 0 && __builtin_cpu_supports("fma") > 0) {
    return VectorWidth::Avx2;
  }
#endif
  return VectorWidth::Generic;
}

const VectorWidth kWidth = widest();

}  // namespace

template <>
const LaneKernels<float>& lane_kernels<float>() {
#if defined(__x86_64__)
  if (kWidth == VectorWidth::Avx512) {
    return avx512::kSingle;
  }
  if (kWidth == VectorWidth::Avx2) {
    return avx2::kSingle;
  }
#endif
  return generic::kSingle;
}

template <>
const LaneKernels<double>& lane_kernels<double>() {
#if defined(__x86_64__)
  if (kWidth == VectorWidth::Avx512) {
    return avx512::kDouble;
  }
  if (kWidth == VectorWidth::Avx2) {
    return avx2::kDouble;
  }
#endif
  return generic::kDouble;
}

}  // namespace engine
