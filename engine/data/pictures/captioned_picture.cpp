#include "engine/data/pictures/captioned_picture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "engine/drawing/label.h"
#include "engine/drawing/rgb_picture.h"
#include "engine/drawing/text.h"

namespace tessera::engine {

namespace {

constexpr Index kSmallSide = 320;                // pictures are enlarged up to this
constexpr Index kLargeSide = kDrawnDetail.rows;  // and reduced to at most this
constexpr Index kMostLines = 6;

std::uint8_t byte_of(double value) {
  return static_cast<std::uint8_t>(std::lround(255 * std::clamp(value, 0.0, 1.0)));
}

// How a picture becomes larger or smaller; one of them is 1.
struct Scale {
  Index enlarged = 1;
  Index reduced = 1;
};

Scale scale_of(const Picture& picture) {
  const Index side = std::max(picture.held_rows, picture.held_cols);
  return {std::max<Index>(1, kSmallSide / side), (side + kLargeSide - 1) / kLargeSide};
}

// The mean of the square of held pixels that becomes one that is drawn.
double mean_of_pixels(const Picture& picture, Index channel, Index row, Index col, Index side) {
  const Index end_row = std::min(row + side, picture.held_rows);
  const Index end_col = std::min(col + side, picture.held_cols);
  double sum = 0;
  for (Index r = row; r < end_row; ++r) {
    for (Index c = col; c < end_col; ++c) {
      sum += static_cast<double>(picture.value(channel, r, c));
    }
  }
  return sum / static_cast<double>((end_row - row) * (end_col - col));
}

void draw_picture(const Picture& picture, Scale scale, Index rows, Index cols, RgbPicture& drawn) {
  for (Index row = 0; row < rows; ++row) {
    const Index from_row = row / scale.enlarged * scale.reduced;
    for (Index col = 0; col < cols; ++col) {
      const Index from_col = col / scale.enlarged * scale.reduced;
      std::array<std::uint8_t, 3> colours{};
      for (std::size_t colour = 0; colour < colours.size(); ++colour) {
        const Index channel = std::min(static_cast<Index>(colour), picture.shape.channels - 1);
        colours[colour] =
            byte_of(mean_of_pixels(picture, channel, from_row, from_col, scale.reduced));
      }
      drawn.set(row, col, {colours[0], colours[1], colours[2]});
    }
  }
}

Index scaled(Index side, Scale scale) {
  return (side * scale.enlarged + scale.reduced - 1) / scale.reduced;
}

}  // namespace

std::vector<std::byte> boxed_picture(const Picture& picture,
                                     const std::vector<LabelledBox>& boxes) {
  const Scale scale = scale_of(picture);
  const Index rows = scaled(picture.held_rows, scale);
  const Index cols = scaled(picture.held_cols, scale);
  RgbPicture drawn(rows, cols, kWhite);
  draw_picture(picture, scale, rows, cols, drawn);
  const auto at = [](double fraction, Index side) {
    return static_cast<Index>(
        std::lround(std::clamp(fraction, 0.0, 1.0) * static_cast<double>(side)));
  };
  for (const LabelledBox& box : boxes) {
    draw_labelled_box(
        drawn,
        {{at(box.top, rows), at(box.bottom, rows)}, {at(box.left, cols), at(box.right, cols)}},
        box.text,
        {.paper = box.colour, .text_height = readable_text_height(rows, cols)});
  }
  return drawn.png();
}

CaptionedPicture captioned_picture(const Picture& picture, const std::string& caption) {
  const Scale scale = scale_of(picture);
  const Index rows = scaled(picture.held_rows, scale);
  const Index picture_cols = scaled(picture.held_cols, scale);
  const Index cols = std::max(picture_cols, kSmallSide);
  const Index height = readable_text_height(rows, cols);
  const Index margin = height / 3;
  const TextMask text = text_mask(
      caption, {.height = height, .max_cols = cols - 2 * margin, .max_lines = kMostLines});
  RgbPicture drawn(rows + text.rows + 2 * margin, cols, kWhite);
  draw_picture(picture, scale, rows, picture_cols, drawn);
  draw_text(drawn, text, rows + margin, margin, kBlack);
  return {drawn.png(), text.unknown};
}

}  // namespace tessera::engine
