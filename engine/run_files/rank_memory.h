// memory.json: bytes of each rank, as planned and as measured.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/run_files/unknown.h"
#include "partitioner/memory/memory.h"

namespace tessera::engine {

struct RankMemory {
  int rank = 0;
  partitioner::MemoryUse planned = {};
  partitioner::MemoryUse measured = {};
  double peak_resident_bytes = kUnknown;
};

// The whole file.
[[nodiscard]] std::string text_of(const std::vector<RankMemory>& ranks);

// Nothing where the text is not what the file should hold.
[[nodiscard]] std::optional<std::vector<RankMemory>> memory_of_ranks(std::string_view text);

}  // namespace tessera::engine
