// Makes a Picture of the rows of a picture file as a decoder gives them, one at a time: reduces and
// turns them on the way, so that the whole picture as it is stored never exists.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/data/pictures/picture.h"

namespace tessera::engine {

// What EXIF's number says about how a stored picture has to be laid: its rows or columns in the
// opposite order first, then rows and columns exchanged.
struct Turn {
  bool rows_reversed = false;
  bool cols_reversed = false;
  bool exchanged = false;
};

// Numbers that EXIF does not have mean: as it is stored.
[[nodiscard]] Turn turn_of(int orientation);

// By how much a picture is reduced: of its rows and columns once it is upright.
[[nodiscard]] Index reduction_for(const PictureHeader& header, const Detail& detail);

class PictureBuilder {
 public:
  // Rows are those of a picture of which the decoder has divided rows and columns by
  // `decoder_reduction` (rounded up), a divisor of `reduction`; `channels` are those to ask for.
  PictureBuilder(const PictureHeader& header,
                 Index channels,
                 Index reduction,
                 Index decoder_reduction = 1);

  // How many rows are to come, and the bytes of each: (columns, channels of the header).
  [[nodiscard]] Index rows() const { return rows_; }
  [[nodiscard]] Index row_bytes() const { return cols_ * channels_; }

  // The next row, from the top as they are stored.
  void add_row(std::span<const std::uint8_t> row);

  // When all rows are there.
  [[nodiscard]] Picture finish();

 private:
  void add_to_sums(const std::uint8_t* row);
  void place_means();
  void place_row(const std::uint8_t* row);

  Index rows_;  // of what is added
  Index cols_;
  Index channels_;
  Index box_;  // rows and columns of what is added for a held pixel
  Turn turn_;
  Index stored_rows_;  // of held pixels, before they are turned
  Index stored_cols_;
  Index added_ = 0;
  std::vector<std::uint64_t> sums_;
  std::vector<std::uint8_t> means_;
  Picture picture_;
};

}  // namespace tessera::engine
