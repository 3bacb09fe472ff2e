// Pictures of our own, as PNG files.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "partitioner/base/region.h"

namespace tessera::engine {

struct RgbPicture {
  Index rows = 0;
  Index cols = 0;
  std::vector<std::uint8_t> bytes;  // (rows, cols, 3)

  RgbPicture(Index rows_of_it, Index cols_of_it)
      : rows(rows_of_it),
        cols(cols_of_it),
        bytes(static_cast<std::size_t>(rows_of_it * cols_of_it * 3)) {}
  [[nodiscard]] std::uint8_t* pixel(Index row, Index col) {
    return bytes.data() + (row * cols + col) * 3;
  }
};

// The bytes of the file.
[[nodiscard]] std::vector<std::byte> png_of(const RgbPicture& picture);

}  // namespace tessera::engine
