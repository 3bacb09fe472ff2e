// Text as pixels, in any script that a font of this machine has: laid out by Pango, drawn by Cairo.
// They take megabytes and are loaded with the first text. Where they or all fonts are missing,
// letters of a built-in ASCII font stand for the text, and font_problem() says what to install.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/drawing/rgb_picture.h"

namespace tessera::engine {

// How much of the ink each pixel of a text takes: 0 (none) to 255.
struct TextMask {
  Index rows = 0;
  Index cols = 0;
  std::vector<std::uint8_t> coverage;  // (rows, cols)
  Index unknown = 0;                   // characters that no font here has
};

struct TextLayout {
  Index height = 16;    // of a line, about, in pixels
  Index max_cols = 0;   // longer text goes on in another line
  Index max_lines = 1;  // of the last line the middle is left out where it does not fit
};

// Of `text` what is printable (see partitioner/base/printable.h) is shown as it is. The mask is
// never wider than `max_cols`.
[[nodiscard]] TextMask text_mask(const std::string& text, const TextLayout& layout);

// What is missing to draw text as it is, and what to install; empty where nothing is.
[[nodiscard]] const std::string& font_problem();

// The height of lines that can be read on a picture of this size, looked at as a whole.
[[nodiscard]] Index readable_text_height(Index rows, Index cols);

// The mask's top left pixel is put at (row, col).
void draw_text(RgbPicture& picture, const TextMask& mask, Index row, Index col, Colour ink);

}  // namespace tessera::engine
