#include "engine/drawing/text.h"

#include <algorithm>
#include <cmath>

#include "engine/drawing/bitmap_text.h"
#include "engine/drawing/font_text.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

namespace {

constexpr double kLinesOnPicture = 20;  // of readable text
constexpr Index kLeastHeight = 16;

std::uint8_t blended(std::uint8_t below, std::uint8_t ink, int coverage) {
  return static_cast<std::uint8_t>((below * (255 - coverage) + ink * coverage + 127) / 255);
}

}  // namespace

const std::string& font_problem() {
  static const std::string problem = font_text_problem();
  return problem;
}

TextMask text_mask(const std::string& text, const TextLayout& layout) {
  const std::string shown = printable(text);
  return font_problem().empty() ? font_text_mask(shown, layout) : bitmap_text_mask(shown, layout);
}

Index readable_text_height(Index rows, Index cols) {
  const double side = std::sqrt(static_cast<double>(rows) * static_cast<double>(cols));
  return std::max(kLeastHeight, static_cast<Index>(std::lround(side / kLinesOnPicture)));
}

void draw_text(RgbPicture& picture, const TextMask& mask, Index row, Index col, Colour ink) {
  const Range rows = intersect(Range{0, mask.rows}, {-row, picture.rows() - row});
  const Range cols = intersect(Range{0, mask.cols}, {-col, picture.cols() - col});
  for (Index r = rows.begin; r < rows.end; ++r) {
    for (Index c = cols.begin; c < cols.end; ++c) {
      const int coverage = mask.coverage[static_cast<std::size_t>(r * mask.cols + c)];
      const Colour below = picture.at(row + r, col + c);
      picture.set(row + r,
                  col + c,
                  {blended(below.red, ink.red, coverage),
                   blended(below.green, ink.green, coverage),
                   blended(below.blue, ink.blue, coverage)});
    }
  }
}

}  // namespace tessera::engine
