// A short text that differs between things that differ, for telling whether two have the same:
// FNV-1a (Fowler, Noll, Vo), 64 bits. Against mistakes, not against forgery.

#pragma once

#include <cstdint>
#include <fmt/format.h>
#include <string>
#include <string_view>

#include "partitioner/base/region.h"

namespace tessera {

class Fingerprint {
 public:
  void add(Index value) {
    auto bits = static_cast<std::uint64_t>(value);
    for (int byte = 0; byte < 8; ++byte) {
      hash_ = (hash_ ^ (bits & 0xffU)) * 0x100000001b3ULL;
      bits >>= 8U;
    }
  }
  void add(std::string_view text) {
    add(static_cast<Index>(text.size()));
    for (const char letter : text) {
      add(static_cast<Index>(static_cast<unsigned char>(letter)));
    }
  }

  [[nodiscard]] std::string text() const { return fmt::format("{:016x}", hash_); }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325ULL;
};

}  // namespace tessera
