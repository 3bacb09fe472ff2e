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

template <class T>
void weighted_sum_any(const WeightedSum<T>& job, Index pixels) {
#if defined(__x86_64__)
  if (kWidth == VectorWidth::Avx512) {
    return avx512::sum(job, pixels);
  }
  if (kWidth == VectorWidth::Avx2) {
    return avx2::sum(job, pixels);
  }
#endif
  generic::sum(job, pixels);
}

template <class T>
void outer_sum_any(const OuterSum<T>& job, Index terms) {
#if defined(__x86_64__)
  if (kWidth == VectorWidth::Avx512) {
    return avx512::outer(job, terms);
  }
  if (kWidth == VectorWidth::Avx2) {
    return avx2::outer(job, terms);
  }
#endif
  generic::outer(job, terms);
}

}  // namespace

Index pixels_at_once(Index in_step) {
  if (kWidth == VectorWidth::Avx512) {
    return in_step == kLanes ? avx512::kDensePixels : avx512::kPixels;
  }
  return generic::kPixels;
}

void weighted_sum(const WeightedSum<float>& job, Index pixels) {
  weighted_sum_any(job, pixels);
}
void weighted_sum(const WeightedSum<double>& job, Index pixels) {
  weighted_sum_any(job, pixels);
}
void outer_sum(const OuterSum<float>& job, Index terms) {
  outer_sum_any(job, terms);
}
void outer_sum(const OuterSum<double>& job, Index terms) {
  outer_sum_any(job, terms);
}

}  // namespace engine
