#include "partitioner/base/printable.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>

#include "partitioner/base/utf8.h"

namespace tessera {

namespace {

struct CodePoints {
  char32_t first;
  char32_t last;
};

// Joiners (U+200C, U+200D) are not among these: names in many languages are written with them.
constexpr CodePoints kHarmful[] = {
    {0x00, 0x1F},        // controls
    {0x7F, 0x9F},        // delete, and controls that some terminals obey in UTF-8, too
    {0xAD, 0xAD},        // soft hyphen: not seen
    {0x61C, 0x61C},      // direction of writing, as are the next three
    {0x200E, 0x200F},    //
    {0x202A, 0x202E},    //
    {0x2066, 0x2069},    //
    {0x180E, 0x180E},    // not seen, as are the next three
    {0x200B, 0x200B},    //
    {0x2060, 0x2065},    //
    {0x206A, 0x206F},    //
    {0x2028, 0x2029},    // separators of lines and paragraphs
    {0xFEFF, 0xFEFF},    // byte-order mark
    {0xFFF9, 0xFFFB},    // annotations
    {0xE0000, 0xE007F},  // tags: text that is not seen
};

bool harmful(char32_t point) {
  return std::any_of(std::begin(kHarmful), std::end(kHarmful), [&](const CodePoints& range) {
    return point >= range.first && point <= range.last;
  });
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t bytes = utf8_character_bytes(text);
    const char32_t point = bytes == 0 ? 0 : utf8_code_point(text);
    if (bytes == 0) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    } else if (!harmful(point)) {
      result += text.substr(0, bytes);
    } else if (point < 0x80) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned>(point));
    } else {
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(point));
    }
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return result;
}

std::string printable_start(std::string_view text, std::size_t most_bytes) {
  const std::string_view start = utf8_prefix(text, most_bytes);
  return printable(start) + (start.size() < text.size() ? "..." : "");
}

}  // namespace tessera
