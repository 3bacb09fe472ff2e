// A picture to draw on: 8 bits each of red, green and blue, row by row from the top left pixel.
//
// Whatever is drawn may reach outside of the picture; that part is left out.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "partitioner/base/region.h"

namespace tessera::engine {

struct Colour {
  std::uint8_t red = 0;
  std::uint8_t green = 0;
  std::uint8_t blue = 0;

  friend bool operator==(const Colour&, const Colour&) = default;
};

inline constexpr Colour kBlack{0, 0, 0};
inline constexpr Colour kWhite{255, 255, 255};

// Black or white, whichever is easier to read on `paper`.
[[nodiscard]] Colour ink_on(Colour paper);

// Pixels of a picture.
struct Rectangle {
  Range rows;
  Range cols;

  friend bool operator==(const Rectangle&, const Rectangle&) = default;
};

class RgbPicture {
 public:
  RgbPicture(Index rows, Index cols, Colour paper);

  [[nodiscard]] Index rows() const { return rows_; }
  [[nodiscard]] Index cols() const { return cols_; }

  // Of a pixel inside.
  [[nodiscard]] Colour at(Index row, Index col) const;
  void set(Index row, Index col, Colour colour);
  // Its red, green and blue, one after the other.
  [[nodiscard]] std::uint8_t* pixel(Index row, Index col) {
    return bytes_.data() + (row * cols_ + col) * 3;
  }

  // The pixels of `box`.
  void fill(const Rectangle& box, Colour colour);

  // A frame along the inside of `box`, `thickness` pixels wide.
  void outline(const Rectangle& box, Index thickness, Colour colour);

  // Puts another picture's top left pixel at (row, col).
  void paste(const RgbPicture& other, Index row, Index col);

  // (rows, cols, 3)
  [[nodiscard]] std::span<std::uint8_t> values() { return bytes_; }
  [[nodiscard]] std::span<const std::uint8_t> values() const { return bytes_; }

  // The bytes of a PNG file.
  [[nodiscard]] std::vector<std::byte> png() const;

 private:
  Index rows_;
  Index cols_;
  std::vector<std::uint8_t> bytes_;  // (rows, cols, 3)
};

}  // namespace tessera::engine
