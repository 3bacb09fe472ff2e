#include "engine/data/text/text_encoding.h"

#include <cstddef>
#include <utility>

namespace tessera::engine {

namespace {

using Bytes = std::vector<std::uint8_t>;

enum class ByteOrder { None, LowFirst, HighFirst };

struct Detected {
  ByteOrder order = ByteOrder::None;  // None: not UTF-16
  std::size_t mark_bytes = 0;
};

Detected detect(const Bytes& bytes) {
  const auto starts = [&](std::initializer_list<int> mark) {
    std::size_t i = 0;
    for (const int byte : mark) {
      if (i >= bytes.size() || bytes[i++] != byte) {
        return false;
      }
    }
    return true;
  };
  if (starts({0xef, 0xbb, 0xbf})) {
    return {ByteOrder::None, 3};
  }
  if (starts({0xff, 0xfe})) {
    return {ByteOrder::LowFirst, 2};
  }
  if (starts({0xfe, 0xff})) {
    return {ByteOrder::HighFirst, 2};
  }
  if (bytes.size() >= 4 && bytes.size() % 2 == 0) {
    const bool low = bytes[0] != 0 && bytes[1] == 0 && bytes[2] != 0 && bytes[3] == 0;
    const bool high = bytes[0] == 0 && bytes[1] != 0 && bytes[2] == 0 && bytes[3] != 0;
    if (low || high) {
      return {low ? ByteOrder::LowFirst : ByteOrder::HighFirst, 0};
    }
  }
  return {};
}

void append_utf8(std::uint32_t letter, Bytes& out) {
  const auto byte = [&](std::uint32_t value) { out.push_back(static_cast<std::uint8_t>(value)); };
  if (letter < 0x80) {
    byte(letter);
    return;
  }
  if (letter < 0x800) {
    byte(0xc0U | letter >> 6U);
  } else if (letter < 0x10000) {
    byte(0xe0U | letter >> 12U);
    byte(0x80U | (letter >> 6U & 0x3fU));
  } else {
    byte(0xf0U | letter >> 18U);
    byte(0x80U | (letter >> 12U & 0x3fU));
    byte(0x80U | (letter >> 6U & 0x3fU));
  }
  byte(0x80U | (letter & 0x3fU));
}

bool is_high_surrogate(std::uint32_t unit) {
  return unit >= 0xd800 && unit < 0xdc00;
}

bool is_low_surrogate(std::uint32_t unit) {
  return unit >= 0xdc00 && unit < 0xe000;
}

}  // namespace

std::optional<std::string> convert_to_utf8(Bytes& bytes) {
  const Detected found = detect(bytes);
  if (found.order == ByteOrder::None) {
    bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(found.mark_bytes));
    return std::nullopt;
  }
  if (bytes.size() % 2 != 0) {
    return "this file starts as UTF-16 and has an odd number of bytes: save it as UTF-8";
  }
  const std::size_t high = found.order == ByteOrder::HighFirst ? 0 : 1;
  const auto unit = [&](std::size_t at) {
    return static_cast<std::uint32_t>(bytes[at + high] << 8 | bytes[at + 1 - high]);
  };
  Bytes text;
  text.reserve(bytes.size());
  for (std::size_t at = found.mark_bytes; at < bytes.size(); at += 2) {
    std::uint32_t letter = unit(at);
    if (is_high_surrogate(letter) && at + 2 < bytes.size() && is_low_surrogate(unit(at + 2))) {
      at += 2;
      letter = 0x10000 + ((letter - 0xd800) << 10U) + (unit(at) - 0xdc00);
    } else if (is_high_surrogate(letter) || is_low_surrogate(letter)) {
      return "this file starts as UTF-16 but continues differently: save it as UTF-8";
    }
    append_utf8(letter, text);
  }
  bytes = std::move(text);
  return std::nullopt;
}

}  // namespace tessera::engine
