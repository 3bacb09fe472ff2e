#include "engine/drawing/label.h"

#include <algorithm>

namespace tessera::engine {

namespace {

// Around the text.
Index margin_of(const LabelStyle& style) {
  return std::max<Index>(1, style.text_height / 6);
}

Index frame_thickness(const LabelStyle& style) {
  return std::max<Index>(1, style.text_height / 8);
}

TextMask label_text(const RgbPicture& picture, const std::string& text, const LabelStyle& style) {
  const Index margin = margin_of(style);
  const Index height = std::min(style.text_height, std::max<Index>(1, picture.rows() - 2 * margin));
  return text_mask(text,
                   {.height = height, .max_cols = std::max<Index>(1, picture.cols() - 2 * margin)});
}

Rectangle draw_label_of(
    RgbPicture& picture, const TextMask& mask, Index row, Index col, const LabelStyle& style) {
  const Index margin = margin_of(style);
  const Index rows = mask.rows + 2 * margin;
  const Index cols = mask.cols + 2 * margin;
  const Index top = std::max<Index>(0, std::min(row, picture.rows() - rows));
  const Index left = std::max<Index>(0, std::min(col, picture.cols() - cols));
  const Rectangle box{intersect(Range{top, top + rows}, {0, picture.rows()}),
                      intersect(Range{left, left + cols}, {0, picture.cols()})};
  picture.fill(box, style.paper);
  draw_text(picture, mask, top + margin, left + margin, ink_on(style.paper));
  return box;
}

}  // namespace

Rectangle draw_label(
    RgbPicture& picture, const std::string& text, Index row, Index col, const LabelStyle& style) {
  return draw_label_of(picture, label_text(picture, text, style), row, col, style);
}

Rectangle draw_labelled_box(RgbPicture& picture,
                            const Rectangle& box,
                            const std::string& text,
                            const LabelStyle& style) {
  picture.outline(box, frame_thickness(style), style.paper);
  const TextMask mask = label_text(picture, text, style);
  const Index above = box.rows.begin - mask.rows - 2 * margin_of(style);
  return draw_label_of(picture, mask, above < 0 ? box.rows.begin : above, box.cols.begin, style);
}

}  // namespace tessera::engine
