#include "engine/ops/simd/block_kernels.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>
#if defined(__arm__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "engine/ops/simd/block_kernel_versions.h"
#include "engine/ops/simd/processor.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

// Narrow before wide; CortexA53 and Neon have Generic's width.
enum class Version { Generic, CortexA53, Neon, Avx2, Avx512 };

Version supported() {
#if defined(__x86_64__)
  // Vectors of any length must multiply and add at once if those of one length do: a row that is
  // cut elsewhere may run on shorter ones, and is to have the same bits.
  if (__builtin_cpu_supports("avx2") > 0 && __builtin_cpu_supports("fma") > 0) {
    return __builtin_cpu_supports("avx512f") > 0 ? Version::Avx512 : Version::Avx2;
  }
#elif defined(__aarch64__)
  // Of several kinds of processors, those that start instructions in order need it more than the
  // others lose by it.
  const std::vector<ProcessorId> processors = processor_ids();
  if (std::any_of(processors.begin(), processors.end(), starts_in_order)) {
    return Version::CortexA53;
  }
#elif defined(__arm__) && defined(__ARM_PCS_VFP)
  if ((::getauxval(AT_HWCAP) & HWCAP_NEON) != 0) {
    return Version::Neon;
  }
#endif
  return Version::Generic;
}

// The environment may ask for less: so that machines of different widths compute the same bits, and
// for tests; or for what another processor would take.
Version chosen() {
  const Version version = supported();
  const char* asked = std::getenv("TESSERA_VECTORS");  // NOLINT(concurrency-mt-unsafe): read once
  if (asked == nullptr) {
    return version;
  }
  if (std::strcmp(asked, "generic") == 0) {
    return Version::Generic;
  }
  if (std::strcmp(asked, "cortex-a53") == 0) {
    return Version::CortexA53;
  }
  return std::strcmp(asked, "avx2") == 0 ? std::min(version, Version::Avx2) : version;
}

const Version kVersion = chosen();

// The one of these that suits this machine. On others than they are for, versions are generic.
template <class Kernels>
const Kernels& pick(const Kernels& generic,
                    [[maybe_unused]] const Kernels& cortex_a53,
                    [[maybe_unused]] const Kernels& neon,
                    [[maybe_unused]] const Kernels& avx2,
                    [[maybe_unused]] const Kernels& avx512) {
  switch (kVersion) {
    case Version::Avx512:
      return avx512;
    case Version::Avx2:
      return avx2;
    case Version::CortexA53:
      return cortex_a53;
    case Version::Neon:
      return neon;
    case Version::Generic:
      break;
  }
  return generic;
}

}  // namespace

void expect_known_vectors() {
  const char* asked = std::getenv("TESSERA_VECTORS");  // NOLINT(concurrency-mt-unsafe)
  const std::string_view name = asked == nullptr ? "generic" : asked;
  if (name != "generic" && name != "avx2" && name != "avx512" && name != "cortex-a53" &&
      name != "neon") {
    throw InputError(
        "TESSERA_VECTORS",
        0,
        "\"" + std::string(name) + "\": expected one of generic, avx2, avx512, cortex-a53, neon");
  }
}

template <>
const BlockKernels<float>& block_kernels<float>() {
  return pick(generic::kSingle, cortex_a53::kSingle, neon::kSingle, avx2::kSingle, avx512::kSingle);
}

template <>
const BlockKernels<double>& block_kernels<double>() {
  return pick(generic::kDouble, generic::kDouble, generic::kDouble, avx2::kDouble, avx512::kDouble);
}

template <>
const RowKernels<float>& row_kernels<float>() {
  return pick(generic::kSingleRows,
              cortex_a53::kSingleRows,
              generic::kSingleRows,
              avx2::kSingleRows,
              avx512::kSingleRows);
}

template <>
const RowKernels<double>& row_kernels<double>() {
  return pick(generic::kDoubleRows,
              generic::kDoubleRows,
              generic::kDoubleRows,
              avx2::kDoubleRows,
              avx512::kDoubleRows);
}

}  // namespace tessera::engine
