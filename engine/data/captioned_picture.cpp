#include "engine/data/captioned_picture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <png.h>
#include <stb/stb_easy_font.h>

#include "partitioner/base/errors.h"
#include "partitioner/base/text_table.h"

namespace tessera::engine {

namespace {

constexpr Index kSmallSide = 256;                // pictures are enlarged up to this
constexpr Index kLargeSide = kDrawnDetail.rows;  // and reduced to at most this
constexpr Index kTextScale = 2;                  // pixels of the picture in one of the font's
constexpr Index kMargin = 6;                     // around the text
constexpr std::size_t kMostText = 60;
constexpr std::uint8_t kPaper = 255;
constexpr std::uint8_t kInk = 0;

// Pixels of (R, G, B), row by row.
struct Canvas {
  Index rows = 0;
  Index cols = 0;
  std::vector<std::uint8_t> bytes;

  Canvas(Index its_rows, Index its_cols)
      : rows(its_rows),
        cols(its_cols),
        bytes(static_cast<std::size_t>(3 * its_rows * its_cols), kPaper) {}

  [[nodiscard]] std::uint8_t* pixel(Index row, Index col) {
    return bytes.data() + 3 * (row * cols + col);
  }
};

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

// The mean of the square of held pixels that becomes one of the canvas.
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

void draw_picture(const Picture& picture, Scale scale, Index rows, Index cols, Canvas& canvas) {
  for (Index row = 0; row < rows; ++row) {
    const Index from_row = row / scale.enlarged * scale.reduced;
    for (Index col = 0; col < cols; ++col) {
      const Index from_col = col / scale.enlarged * scale.reduced;
      for (Index colour = 0; colour < 3; ++colour) {
        const Index channel = std::min(colour, picture.shape.channels - 1);
        canvas.pixel(row, col)[colour] =
            byte_of(mean_of_pixels(picture, channel, from_row, from_col, scale.reduced));
      }
    }
  }
}

std::string in_ascii(const std::string& text) {
  std::string ascii;
  for (const char byte : shortened(text, kMostText)) {
    const auto code = static_cast<unsigned char>(byte);
    if (code >= ' ' && code < 0x7f) {
      ascii += byte;
    } else if ((code & 0xc0U) != 0x80U) {  // the first byte of its character
      ascii += '?';
    }
  }
  return ascii;
}

// The text's strokes, each a rectangle of the font's pixels.
void draw_text(std::string text, Index top, Index left, Canvas& canvas) {
  struct Corner {
    float x, y, z;
    std::array<unsigned char, 4> colour;
  };
  using Stroke = std::array<Corner, 4>;
  constexpr std::size_t kStrokesOfLetter = 24;
  std::vector<Stroke> strokes(kStrokesOfLetter * (text.size() + 1));
  const int count = stb_easy_font_print(0,
                                        0,
                                        text.data(),
                                        nullptr,
                                        strokes.data(),
                                        static_cast<int>(strokes.size() * sizeof(Stroke)));
  strokes.resize(static_cast<std::size_t>(count));
  const auto place = [](float at) { return kTextScale * static_cast<Index>(std::lround(at)); };
  for (const Stroke& stroke : strokes) {
    for (Index row = place(stroke[0].y); row < place(stroke[2].y); ++row) {
      for (Index col = place(stroke[0].x); col < place(stroke[2].x); ++col) {
        if (top + row < canvas.rows && left + col < canvas.cols) {
          std::fill_n(canvas.pixel(top + row, left + col), 3, kInk);
        }
      }
    }
  }
}

std::vector<std::byte> png_of(const Canvas& canvas) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(canvas.cols);
  image.height = static_cast<png_uint_32>(canvas.rows);
  image.format = PNG_FORMAT_RGB;
  std::vector<std::byte> file(PNG_IMAGE_PNG_SIZE_MAX(image));
  png_alloc_size_t size = file.size();
  const int written =
      png_image_write_to_memory(&image, file.data(), &size, 0, canvas.bytes.data(), 0, nullptr);
  expects(written != 0, "a picture in memory can be written as PNG");
  file.resize(size);
  return file;
}

}  // namespace

std::vector<std::byte> captioned_png(const Picture& picture, const std::string& caption) {
  const Scale scale = scale_of(picture);
  const auto scaled = [scale](Index side) {
    return (side * scale.enlarged + scale.reduced - 1) / scale.reduced;
  };
  const Index rows = scaled(picture.held_rows);
  const Index cols = scaled(picture.held_cols);
  std::string text = in_ascii(caption);
  const Index text_cols = kTextScale * stb_easy_font_width(text.data());
  const Index text_rows = kTextScale * stb_easy_font_height(text.data());
  Canvas canvas(rows + text_rows + 2 * kMargin, std::max(cols, text_cols + 2 * kMargin));
  draw_picture(picture, scale, rows, cols, canvas);
  draw_text(std::move(text), rows + kMargin, kMargin, canvas);
  return png_of(canvas);
}

}  // namespace tessera::engine
