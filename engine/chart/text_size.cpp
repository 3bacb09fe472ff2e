#include "engine/chart/text_size.h"

#include "partitioner/base/printable.h"

namespace tessera::engine {

namespace {

constexpr std::string_view kEllipsis = "\u2026";

// Bytes of the character that begins with this one, in UTF-8.
std::size_t bytes_of_character(char first) {
  const auto code = static_cast<unsigned char>(first);
  return code < 0xc0U ? 1 : code < 0xe0U ? 2 : code < 0xf0U ? 3 : 4;
}

// In units of the letters' size.
double width_of_character(char first) {
  constexpr std::string_view kSlim = "ijlI.,:;|!'()[]";
  constexpr std::string_view kBroad = "mwMWQO@%";
  const auto code = static_cast<unsigned char>(first);
  if (code >= 0xe3U || code == 0xe1U) {
    return 1;  // from U+1000 on most scripts are broad, but for punctuation
  }
  if (kSlim.find(first) != std::string_view::npos) {
    return 0.38;
  }
  if (kBroad.find(first) != std::string_view::npos) {
    return 0.98;
  }
  return first >= 'A' && first <= 'Z' ? 0.72 : 0.63;
}

double width_of_printable(std::string_view text, double size) {
  double width = 0;
  for (std::size_t at = 0; at < text.size(); at += bytes_of_character(text[at])) {
    width += size * width_of_character(text[at]);
  }
  return width;
}

}  // namespace

double drawn_width(std::string_view text, double size) {
  return width_of_printable(printable(text), size);
}

std::string fitted(std::string_view text, double width, double size) {
  std::string shown = printable(text);
  if (width_of_printable(shown, size) <= width) {
    return shown;
  }
  const double room = width - size;  // an ellipsis is broad
  double used = 0;
  std::size_t end = 0;
  while (end < shown.size() && used + size * width_of_character(shown[end]) <= room) {
    used += size * width_of_character(shown[end]);
    end += bytes_of_character(shown[end]);
  }
  shown.resize(end);
  return shown + std::string(kEllipsis);
}

}  // namespace tessera::engine
