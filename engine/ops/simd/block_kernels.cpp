#include "engine/ops/simd/block_kernels.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "engine/ops/simd/block_kernel_versions.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

enum class VectorWidth { Generic, Avx2, Avx512 };

VectorWidth supported() {
#if defined(__x86_64__)
  // Vectors of any length must multiply and add at once if those of one length do: a row that is
  // cut elsewhere may run on shorter ones, and is to have the same bits.
  if (__builtin_cpu_supports("avx2") > 0 && __builtin_cpu_supports("fma") > 0) {
    return __builtin_cpu_supports("avx512f") > 0 ? VectorWidth::Avx512 : VectorWidth::Avx2;
  }
#endif
  return VectorWidth::Generic;
}

// The environment may ask for less: so that machines of different widths compute the same bits, and
// for tests.
VectorWidth chosen() {
  const VectorWidth width = supported();
  const char* asked = std::getenv("TESSERA_VECTORS");  // NOLINT(concurrency-mt-unsafe): read once
  if (asked == nullptr) {
    return width;
  }
  if (std::strcmp(asked, "generic") == 0) {
    return VectorWidth::Generic;
  }
  return std::strcmp(asked, "avx2") == 0 ? std::min(width, VectorWidth::Avx2) : width;
}

const VectorWidth kWidth = chosen();

// The one of three that this machine's vectors are wide enough for.
template <class Kernels>
const Kernels& pick(const Kernels& generic,
                    [[maybe_unused]] const Kernels& avx2,
                    [[maybe_unused]] const Kernels& avx512) {
  switch (kWidth) {
    case VectorWidth::Avx512:
      return avx512;
    case VectorWidth::Avx2:
      return avx2;
    case VectorWidth::Generic:
      break;
  }
  return generic;
}

}  // namespace

void expect_known_vectors() {
  const char* asked = std::getenv("TESSERA_VECTORS");  // NOLINT(concurrency-mt-unsafe)
  const std::string_view name = asked == nullptr ? "generic" : asked;
  if (name != "generic" && name != "avx2" && name != "avx512") {
    throw InputError("TESSERA_VECTORS",
                     0,
                     "\"" + std::string(name) + "\": expected one of generic, avx2, avx512");
  }
}

template <>
const BlockKernels<float>& block_kernels<float>() {
  return pick(generic::kSingle, avx2::kSingle, avx512::kSingle);
}

template <>
const BlockKernels<double>& block_kernels<double>() {
  return pick(generic::kDouble, avx2::kDouble, avx512::kDouble);
}

template <>
const RowKernels<float>& row_kernels<float>() {
  return pick(generic::kSingleRows, avx2::kSingleRows, avx512::kSingleRows);
}

template <>
const RowKernels<double>& row_kernels<double>() {
  return pick(generic::kDoubleRows, avx2::kDoubleRows, avx512::kDoubleRows);
}

}  // namespace tessera::engine
