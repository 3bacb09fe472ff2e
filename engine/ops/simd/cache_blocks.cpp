#include "engine/ops/simd/cache_blocks.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "engine/ops/simd/processor.h"

namespace tessera::engine {

namespace {

constexpr SecondCache kCacheOfCortexA53{Index{512} << 10U, true};

std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// "512K" or "1M"; 0 where it is neither.
Index bytes_said(std::string_view text) {
  Index count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (error != std::errc{} || count < 0 || count > (Index{1} << 20U)) {
    return 0;
  }
  return unit == "K" ? count << 10U : unit == "M" ? count << 20U : 0;
}

// A cache that only the threads of one core have is that core's own.
bool several_cores(const std::string& sharing, const std::string& threads_of_core) {
  return sharing.find_first_of(",-") != std::string::npos && sharing != threads_of_core;
}

SecondCache cache_by_processor(const std::filesystem::path& root) {
  for (const ProcessorId& processor : processor_ids(root)) {
    if (processor == kCortexA53) {
      return kCacheOfCortexA53;
    }
    if (processor == kCortexA72) {
      return {Index{1} << 20U, true};
    }
    if (processor == kCortexA76) {
      return {Index{512} << 10U, false};
    }
  }
  return {};
}

CacheBlocks chosen_blocks() {
  const char* asked = std::getenv("TESSERA_VECTORS");  // NOLINT(concurrency-mt-unsafe): read once
  const bool as_cortex_a53 = asked != nullptr && std::string_view(asked) == "cortex-a53";
  return cache_blocks_for(as_cortex_a53 ? kCacheOfCortexA53 : second_cache());
}

}  // namespace

SecondCache second_cache(const std::filesystem::path& root) {
  const std::filesystem::path processor = root / "sys/devices/system/cpu/cpu0";
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(processor / "cache", none)) {
    const std::filesystem::path& cache = entry.path();
    if (first_line(cache / "level") == "2" && first_line(cache / "type") != "Instruction") {
      const Index bytes = bytes_said(first_line(cache / "size"));
      if (bytes > 0) {
        return {bytes,
                several_cores(first_line(cache / "shared_cpu_list"),
                              first_line(processor / "topology/thread_siblings_list"))};
      }
    }
  }
  return cache_by_processor(root);
}

CacheBlocks cache_blocks_for(const SecondCache& cache) {
  CacheBlocks blocks;
  if (cache.bytes > 0) {
    constexpr Index kLeast = Index{64} << 10U;
    const Index most = cache.shared ? cache.bytes / 2 : cache.bytes;
    blocks.part_bytes = std::clamp(most, kLeast, blocks.part_bytes);
    blocks.shared_bytes = cache.shared ? cache.bytes : 0;
  }
  return blocks;
}

const CacheBlocks& cache_blocks() {
  static const CacheBlocks kBlocks = chosen_blocks();
  return kBlocks;
}

}  // namespace tessera::engine
