#include "engine/drawing/bitmap_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <stb/stb_easy_font.h>
#include <utf8proc.h>

namespace tessera::engine {

namespace {

constexpr Index kFontHeight = 12;  // of a line, in the font's own pixels
constexpr Index kFontTop = 1;      // above letters, which take 10 with what hangs below the line

struct AsciiText {
  std::string letters;
  Index unknown = 0;
};

// Letters with their marks taken off; as it is where it is not UTF-8.
std::string without_marks(const std::string& text) {
  utf8proc_uint8_t* plain = nullptr;
  const utf8proc_ssize_t bytes =
      ::utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                     static_cast<utf8proc_ssize_t>(text.size()),
                     &plain,
                     static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPAT |
                                                    UTF8PROC_DECOMPOSE | UTF8PROC_STRIPMARK));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owned(plain, std::free);
  return bytes < 0
             ? text
             : std::string(reinterpret_cast<const char*>(plain), static_cast<std::size_t>(bytes));
}

AsciiText in_ascii(const std::string& text) {
  AsciiText ascii;
  for (const char byte : without_marks(text)) {
    const auto code = static_cast<unsigned char>(byte);
    if (code >= ' ' && code < 0x7f) {
      ascii.letters += byte;
    } else if ((code & 0xc0U) != 0x80U) {  // the first byte of its character
      ascii.letters += '?';
      ++ascii.unknown;
    }
  }
  return ascii;
}

Index font_cols(std::string text) {
  return stb_easy_font_width(text.data());
}

// The text's beginning that fits; at least a letter.
std::string beginning(const std::string& text, Index cols) {
  std::size_t size = std::min(text.size(), static_cast<std::size_t>(cols));
  while (size > 1 && font_cols(text.substr(0, size)) > cols) {
    --size;
  }
  return text.substr(0, size);
}

// The text without as much of its middle as does not fit.
std::string without_middle(const std::string& text, Index cols) {
  std::size_t kept = std::min(text.size(), static_cast<std::size_t>(cols));
  std::string shown = text;
  while (kept > 0 && font_cols(shown) > cols) {
    --kept;
    shown = text.substr(0, (kept + 1) / 2) + "..." + text.substr(text.size() - kept / 2);
  }
  return shown;
}

std::vector<std::string> lines_of(std::string text, Index cols, Index max_lines) {
  std::vector<std::string> lines;
  while (std::ssize(lines) < max_lines - 1 && font_cols(text) > cols) {
    lines.push_back(beginning(text, cols));
    text.erase(0, lines.back().size());
  }
  lines.push_back(without_middle(text, cols));
  return lines;
}

// A line's strokes, each a rectangle of the font's pixels.
void draw_line(std::string line, Index top, Index scale, TextMask& mask) {
  struct Corner {
    float x, y, z;
    std::array<unsigned char, 4> colour;
  };
  using Stroke = std::array<Corner, 4>;
  constexpr std::size_t kStrokesOfLetter = 24;
  std::vector<Stroke> strokes(kStrokesOfLetter * (line.size() + 1));
  const int count = stb_easy_font_print(0,
                                        0,
                                        line.data(),
                                        nullptr,
                                        strokes.data(),
                                        static_cast<int>(strokes.size() * sizeof(Stroke)));
  strokes.resize(static_cast<std::size_t>(count));
  const auto place = [scale](float at) { return scale * static_cast<Index>(std::lround(at)); };
  for (const Stroke& stroke : strokes) {
    const Range rows =
        intersect(Range{top + place(stroke[0].y), top + place(stroke[2].y)}, {0, mask.rows});
    const Range cols = intersect(Range{place(stroke[0].x), place(stroke[2].x)}, {0, mask.cols});
    for (Index row = rows.begin; row < rows.end; ++row) {
      std::fill_n(mask.coverage.data() + row * mask.cols + cols.begin, cols.size(), 255);
    }
  }
}

}  // namespace

TextMask bitmap_text_mask(const std::string& text, const TextLayout& layout) {
  const Index scale = std::max<Index>(1, layout.height / kFontHeight);
  const AsciiText ascii = in_ascii(text);
  const std::vector<std::string> lines =
      lines_of(ascii.letters, std::max<Index>(1, layout.max_cols / scale), layout.max_lines);
  TextMask mask;
  mask.unknown = ascii.unknown;
  mask.rows = scale * kFontHeight * std::ssize(lines);
  for (const std::string& line : lines) {
    mask.cols = std::max(mask.cols, std::min(layout.max_cols, scale * font_cols(line)));
  }
  mask.coverage.resize(static_cast<std::size_t>(mask.rows * mask.cols));
  for (Index number = 0; number < std::ssize(lines); ++number) {
    draw_line(lines[static_cast<std::size_t>(number)],
              scale * (kFontHeight * number + kFontTop),
              scale,
              mask);
  }
  return mask;
}

}  // namespace tessera::engine
