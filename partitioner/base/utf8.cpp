#include "partitioner/base/utf8.h"

namespace tessera {

namespace {

unsigned byte_at(std::string_view text, std::size_t i) {
  return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
}

bool continues(unsigned byte) {
  return (byte & 0xC0U) == 0x80U;
}

}  // namespace

std::size_t utf8_character_bytes(std::string_view text) {
  if (text.empty()) {
    return 0;
  }
  const unsigned lead = byte_at(text, 0);
  if (lead < 0x80) {
    return 1;
  }
  if (lead < 0xC2 || lead > 0xF4) {
    return 0;
  }
  // The second byte rules out longer spellings of shorter characters, surrogates, and what lies
  // beyond Unicode.
  const unsigned least = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned most = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (byte_at(text, 1) < least || byte_at(text, 1) > most) {
    return 0;
  }
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  for (std::size_t i = 2; i < length; ++i) {
    if (!continues(byte_at(text, i))) {
      return 0;
    }
  }
  return length;
}

char32_t utf8_code_point(std::string_view text) {
  const std::size_t length = utf8_character_bytes(text);
  const unsigned lead = byte_at(text, 0);
  char32_t point = length == 1 ? lead : lead & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    point = point << 6U | (byte_at(text, i) & 0x3FU);
  }
  return point;
}

std::string_view utf8_prefix(std::string_view text, std::size_t most) {
  if (text.size() <= most) {
    return text;
  }
  std::size_t end = most;
  while (end > 0 && most - end < 3 && continues(byte_at(text, end))) {
    --end;
  }
  return text.substr(0, continues(byte_at(text, end)) ? most : end);
}

}  // namespace tessera
