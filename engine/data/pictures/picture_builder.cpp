#include "engine/data/pictures/picture_builder.h"

#include <algorithm>
#include <utility>

#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

Index divided_up(Index size, Index by) {
  return (size + by - 1) / by;
}

}  // namespace

Turn turn_of(int orientation) {
  switch (orientation) {
    case 2:
      return {.cols_reversed = true};
    case 3:
      return {.rows_reversed = true, .cols_reversed = true};
    case 4:
      return {.rows_reversed = true};
    case 5:
      return {.exchanged = true};
    case 6:
      return {.rows_reversed = true, .exchanged = true};
    case 7:
      return {.rows_reversed = true, .cols_reversed = true, .exchanged = true};
    case 8:
      return {.cols_reversed = true, .exchanged = true};
    default:
      return {};
  }
}

bool is_on_its_side(const PictureHeader& header) {
  return turn_of(header.orientation).exchanged;
}

Index reduction_for(Index rows, Index cols, const Detail& detail) {
  const Index most =
      std::min(rows / std::max<Index>(detail.rows, 1), cols / std::max<Index>(detail.cols, 1));
  Index reduction = 1;
  while (2 * reduction <= most) {
    reduction *= 2;
  }
  const Index between = reduction / 2 * 3;
  return between > 0 && between <= most ? between : reduction;
}

Index reduction_for(const PictureHeader& header, const Detail& detail) {
  return is_on_its_side(header) ? reduction_for(header.cols, header.rows, detail)
                                : reduction_for(header.rows, header.cols, detail);
}

PictureBuilder::PictureBuilder(const PictureHeader& header,
                               Index channels,
                               Index reduction,
                               Index decoder_reduction)
    : rows_(divided_up(header.rows, decoder_reduction)),
      cols_(divided_up(header.cols, decoder_reduction)),
      channels_(header.channels),
      box_(reduction / decoder_reduction),
      turn_(turn_of(header.orientation)),
      stored_rows_(divided_up(header.rows, reduction)),
      stored_cols_(divided_up(header.cols, reduction)) {
  expects(reduction % decoder_reduction == 0, "a decoder reduces by a part of the reduction");
  picture_.shape = {channels, header.rows, header.cols};
  picture_.reduction = reduction;
  picture_.held_rows = stored_rows_;
  picture_.held_cols = stored_cols_;
  picture_.held_channels = channels_;
  picture_.lead_rows = turn_.rows_reversed ? stored_rows_ * reduction - header.rows : 0;
  picture_.lead_cols = turn_.cols_reversed ? stored_cols_ * reduction - header.cols : 0;
  if (turn_.exchanged) {
    std::swap(picture_.shape.rows, picture_.shape.cols);
    std::swap(picture_.held_rows, picture_.held_cols);
    std::swap(picture_.lead_rows, picture_.lead_cols);
  }
  picture_.bytes.resize(static_cast<std::size_t>(stored_rows_ * stored_cols_ * channels_));
  if (box_ > 1) {
    sums_.resize(static_cast<std::size_t>(stored_cols_ * channels_));
    means_.resize(sums_.size());
  }
}

void PictureBuilder::add_row(std::span<const std::uint8_t> row) {
  expects(added_ < rows_ && static_cast<Index>(row.size()) >= row_bytes(),
          "rows of the size and number that were said");
  ++added_;
  if (box_ == 1) {
    place_row(row.data());
    return;
  }
  add_to_sums(row.data());
  if (added_ % box_ == 0 || added_ == rows_) {
    place_means();
  }
}

void PictureBuilder::add_to_sums(const std::uint8_t* row) {
  std::uint64_t* sum = sums_.data();
  for (Index first = 0; first < cols_; first += box_, sum += channels_) {
    const Index end = std::min(first + box_, cols_);
    for (Index channel = 0; channel < channels_; ++channel) {
      std::uint64_t total = 0;
      for (Index col = first; col < end; ++col) {
        total += row[col * channels_ + channel];
      }
      sum[channel] += total;
    }
  }
}

// At the last row and column fewer pixels make a mean.
void PictureBuilder::place_means() {
  const Index rows = (added_ - 1) % box_ + 1;
  for (Index col = 0; col < stored_cols_; ++col) {
    const auto pixels = static_cast<std::uint64_t>(rows * std::min(box_, cols_ - col * box_));
    for (Index channel = 0; channel < channels_; ++channel) {
      const auto at = static_cast<std::size_t>(col * channels_ + channel);
      means_[at] = static_cast<std::uint8_t>((sums_[at] + pixels / 2) / pixels);
    }
  }
  std::fill(sums_.begin(), sums_.end(), 0);
  place_row(means_.data());
}

void PictureBuilder::place_row(const std::uint8_t* row) {
  const Index number = (added_ - 1) / box_;
  const Index upright_row = turn_.rows_reversed ? stored_rows_ - 1 - number : number;
  const Index row_step = turn_.exchanged ? channels_ : stored_cols_ * channels_;
  const Index col_step = turn_.exchanged ? stored_rows_ * channels_ : channels_;
  std::uint8_t* out = picture_.bytes.data() + upright_row * row_step;
  if (col_step == channels_ && !turn_.cols_reversed) {
    std::copy_n(row, stored_cols_ * channels_, out);
    return;
  }
  for (Index col = 0; col < stored_cols_; ++col) {
    const Index upright_col = turn_.cols_reversed ? stored_cols_ - 1 - col : col;
    std::copy_n(row + col * channels_, channels_, out + upright_col * col_step);
  }
}

Picture PictureBuilder::finish() {
  expects(added_ == rows_, "all rows of a picture are there");
  return std::move(picture_);
}

}  // namespace tessera::engine
