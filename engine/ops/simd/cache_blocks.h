// How much kernels work on at once, so that what they come back to stays in a processor's cache of
// the second level. Results have the same bits whatever the sizes.

#pragma once

#include <filesystem>

#include "engine/base/tensor.h"

namespace tessera::engine {

// A cache of the second level.
struct SecondCache {
  Index bytes = 0;      // 0: not known
  bool shared = false;  // by several cores, or each has its own

  friend bool operator==(const SecondCache&, const SecondCache&) = default;
};

// That of the first processor, as Linux tells of it in sys under `root`. Where it does not, as
// early kernels of Raspberry Pis do not, that of their processors with 64 bits: other boards may
// have less or more with the same cores.
[[nodiscard]] SecondCache second_cache(const std::filesystem::path& root = "/");

struct CacheBlocks {
  Index part_bytes = Index{1} << 20U;  // of maps that a direct convolution goes through again
  Index shared_bytes = 0;              // of a cache that cores share; 0: each has its own

  // Whether threads work on the same part of a map, or each on its own.
  [[nodiscard]] bool together() const { return shared_bytes > 0; }

  friend bool operator==(const CacheBlocks&, const CacheBlocks&) = default;
};

// Parts are half of a cache that cores share, beside what each reads and writes, or as large as a
// core's own: what that does not hold is in the third level.
[[nodiscard]] CacheBlocks cache_blocks_for(const SecondCache& cache);

// For this machine; with TESSERA_VECTORS=cortex-a53 for a Raspberry Pi 3.
[[nodiscard]] const CacheBlocks& cache_blocks();

}  // namespace tessera::engine
