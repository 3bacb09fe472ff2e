#include "engine/drawing/rgb_picture.h"

#include <png.h>

#include "partitioner/base/errors.h"

namespace tessera::engine {

Colour ink_on(Colour paper) {
  const int luma = 299 * paper.red + 587 * paper.green + 114 * paper.blue;  // Rec. 601
  return luma < 128 * 1000 ? kWhite : kBlack;
}

RgbPicture::RgbPicture(Index rows, Index cols, Colour paper)
    : rows_(rows), cols_(cols), bytes_(static_cast<std::size_t>(3 * rows * cols)) {
  fill({{0, rows}, {0, cols}}, paper);
}

Colour RgbPicture::at(Index row, Index col) const {
  const std::uint8_t* pixel = bytes_.data() + 3 * (row * cols_ + col);
  return {pixel[0], pixel[1], pixel[2]};
}

void RgbPicture::set(Index row, Index col, Colour colour) {
  std::uint8_t* pixel = bytes_.data() + 3 * (row * cols_ + col);
  pixel[0] = colour.red;
  pixel[1] = colour.green;
  pixel[2] = colour.blue;
}

void RgbPicture::fill(const Rectangle& box, Colour colour) {
  const Range rows = intersect(box.rows, {0, rows_});
  const Range cols = intersect(box.cols, {0, cols_});
  for (Index row = rows.begin; row < rows.end; ++row) {
    for (Index col = cols.begin; col < cols.end; ++col) {
      set(row, col, colour);
    }
  }
}

void RgbPicture::outline(const Rectangle& box, Index thickness, Colour colour) {
  const auto [rows, cols] = box;
  fill({intersect(rows, {rows.begin, rows.begin + thickness}), cols}, colour);
  fill({intersect(rows, {rows.end - thickness, rows.end}), cols}, colour);
  fill({rows, intersect(cols, {cols.begin, cols.begin + thickness})}, colour);
  fill({rows, intersect(cols, {cols.end - thickness, cols.end})}, colour);
}

void RgbPicture::paste(const RgbPicture& other, Index row, Index col) {
  const Range rows = intersect(Range{row, row + other.rows()}, {0, rows_});
  const Range cols = intersect(Range{col, col + other.cols()}, {0, cols_});
  for (Index r = rows.begin; r < rows.end; ++r) {
    for (Index c = cols.begin; c < cols.end; ++c) {
      set(r, c, other.at(r - row, c - col));
    }
  }
}

std::vector<std::byte> RgbPicture::png() const {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(cols_);
  image.height = static_cast<png_uint_32>(rows_);
  image.format = PNG_FORMAT_RGB;
  std::vector<std::byte> file(PNG_IMAGE_PNG_SIZE_MAX(image));
  png_alloc_size_t size = file.size();
  const int written =
      ::png_image_write_to_memory(&image, file.data(), &size, 0, bytes_.data(), 0, nullptr);
  expects(written != 0, "a picture in memory can be written as PNG");
  file.resize(size);
  return file;
}

}  // namespace tessera::engine
