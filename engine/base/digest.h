// Tells contents apart: 64 bits of any number of bytes, some bytes each cycle. Against mistakes,
// not against forgery.

#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace tessera::engine {

class Digest {
 public:
  void add(std::uint64_t word) {
    hash_ = (hash_ ^ word) * 0x9e3779b97f4a7c15ULL;
    hash_ ^= hash_ >> 29U;
  }

  // What is added in two parts is told apart from the same in one.
  void add(std::span<const std::uint8_t> bytes) {
    add(static_cast<std::uint64_t>(bytes.size()));
    while (bytes.size() >= sizeof(std::uint64_t)) {
      add(word_of(bytes.first(sizeof(std::uint64_t))));
      bytes = bytes.subspan(sizeof(std::uint64_t));
    }
    if (!bytes.empty()) {
      add(word_of(bytes));
    }
  }

  void add(std::string_view text) {
    add(std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
  }

  [[nodiscard]] std::uint64_t value() const { return hash_ ^ hash_ >> 32U; }

 private:
  [[nodiscard]] static std::uint64_t word_of(std::span<const std::uint8_t> bytes) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), bytes.size());
    return word;
  }

  std::uint64_t hash_ = 0x243f6a8885a308d3ULL;
};

}  // namespace tessera::engine
