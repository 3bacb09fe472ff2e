#include "engine/files/written_bytes.h"

#include <atomic>

namespace tessera::engine {

namespace {

std::atomic<std::int64_t> written{0};

}  // namespace

std::int64_t bytes_written() {
  return written;
}

void count_written(std::int64_t bytes) {
  written += bytes;
}

}  // namespace tessera::engine
