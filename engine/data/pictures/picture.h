// A picture: what the data sets give, one at a time, and what the network's input is rendered from.
//
// It is upright (a camera's note of which side is up is followed) and holds bytes, which stand for
// values of 0..1. Colour becomes grey by Rec. 601 luma and grey becomes colour by repetition when a
// value is asked for. A picture much larger than what will be made of it is held reduced: its shape
// and all coordinates stay those of the whole picture, only the bytes are fewer.

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "partitioner/base/errors.h"
#include "partitioner/network/network.h"

namespace tessera::engine {

// How many rows and columns of an upright picture have to be kept. By default all of them.
struct Detail {
  Index rows = std::numeric_limits<Index>::max();
  Index cols = std::numeric_limits<Index>::max();
};

// The largest of 1, 2, 3, 4, 6, 8, 12, ... by which rows and columns may be divided so that
// `detail` is kept.
[[nodiscard]] Index reduction_for(Index rows, Index cols, const Detail& detail);

struct Picture {
  partitioner::MapShape shape;  // of the whole picture; channels: those that were asked for
  Index reduction = 1;          // a held pixel is the mean of reduction x reduction pixels
  Index held_rows = 0;
  Index held_cols = 0;
  Index held_channels = 1;  // 1 or 3
  // Rows and columns by which the first held pixel sticks out of the picture, as the last may do.
  Index lead_rows = 0;
  Index lead_cols = 0;
  std::vector<std::uint8_t> bytes;  // (held_rows, held_cols, held_channels), unless it is lent
  // The same in memory of somebody else's, who is kept alive by `lender` or outlives the picture.
  std::span<const std::uint8_t> lent = {};
  std::shared_ptr<const void> lender = {};
  Index decoding_bytes = 0;  // what decoding it took, where it was in a file

  [[nodiscard]] std::span<const std::uint8_t> pixels() const {
    return lent.empty() ? std::span<const std::uint8_t>(bytes) : lent;
  }

  // 0..1, of a held pixel. In integers up to one division, so that every machine gives the same
  // bits.
  [[nodiscard]] float value(Index channel, Index held_row, Index held_col) const;
};

// A picture of `channels` (1 or 3) from `shape.channels` (1 or 3) planes of bytes, (C, H, W).
[[nodiscard]] Picture picture_of_planes(std::span<const std::uint8_t> planes,
                                        const partitioner::MapShape& shape,
                                        Index channels,
                                        const Detail& detail = {});

enum class PictureFormat { Jpeg, Png, WebP, Gif, Bmp };

// What the beginning of a picture file says.
struct PictureHeader {
  PictureFormat format = PictureFormat::Jpeg;
  Index rows = 0;  // as they are stored, before the picture is turned upright
  Index cols = 0;
  Index channels = 3;  // 1 or 3 are held
  Index file_bytes = 0;
  int orientation = 1;         // EXIF's number, 1 to 8
  Index decoder_bytes = 0;     // what its decoder takes, beside the file and the picture
  Index least_file_bytes = 0;  // no file of this format holds so many pixels in fewer
};

// Reads no more of the file than needed. Throws InputError where it is of another format or its
// header cannot be used.
[[nodiscard]] PictureHeader read_picture_header(const std::filesystem::path& path);

// Whether upright its rows are the columns that are stored.
[[nodiscard]] bool is_on_its_side(const PictureHeader& header);
// The same of the bytes of a whole file; `name` is for messages.
[[nodiscard]] PictureHeader picture_header(std::span<const std::uint8_t> file,
                                           const std::string& name);

// Bytes of what is held of a picture.
[[nodiscard]] Index held_bytes(const PictureHeader& header, const Detail& detail);

// What decoding a picture may take.
inline constexpr Index kMaxDecodingBytes = Index{1} << 28;

// The most that decoding takes: the file, its decoder, and what is held of the picture.
[[nodiscard]] Index decoding_bytes(const PictureHeader& header, const Detail& detail);

// What is thrown of a file that is no picture which can be decoded.
class BrokenPicture : public InputError {
 public:
  using InputError::InputError;
};

// Decodes the bytes of a picture file. Throws BrokenPicture that starts with `name` when they are
// damaged in any way that shows, cut off, of another format, or too much: more than 2^26 pixels, or
// more than 256 MiB of memory to decode.
[[nodiscard]] Picture decode_picture(std::span<const std::uint8_t> file,
                                     const std::string& name,
                                     Index channels,
                                     const Detail& detail = {});

// Longer files are not read.
inline constexpr Index kMostPictureBytes = Index{1} << 29;

// Reads and decodes one such file.
[[nodiscard]] Picture read_picture_file(const std::filesystem::path& path,
                                        Index channels,
                                        const Detail& detail = {});

// Whether the last bytes of a file lack what its format ends with: it may have been cut off, or
// something else may follow the picture. Decoding it tells.
[[nodiscard]] bool lacks_end_mark(const std::filesystem::path& path);

// Whether the file's name ends as those of pictures that are read do, in capitals or not.
[[nodiscard]] bool is_picture_name(const std::filesystem::path& path);

// Whether it ends as those of pictures of other formats do: HEIC, AVIF, TIFF, raw files of cameras.
[[nodiscard]] bool is_other_picture_name(const std::filesystem::path& path);

// What converts pictures of such an ending: "for example with heif-convert of Debian's ...".
[[nodiscard]] std::string_view other_picture_converter(std::string_view ending);

namespace byte_values {

inline constexpr std::array<float, 256> kTable = [] {
  std::array<float, 256> table{};
  for (std::size_t byte = 0; byte < table.size(); ++byte) {
    table[byte] = static_cast<float>(byte) / 255.0F;
  }
  return table;
}();

}  // namespace byte_values

inline float Picture::value(Index channel, Index held_row, Index held_col) const {
  const std::uint8_t* first = lent.empty() ? bytes.data() : lent.data();
  const std::uint8_t* pixel = first + (held_row * held_cols + held_col) * held_channels;
  if (held_channels == 3 && shape.channels == 1) {
    const unsigned luma = 299U * pixel[0] + 587U * pixel[1] + 114U * pixel[2];
    return static_cast<float>(luma) / 255000.0F;
  }
  return byte_values::kTable[pixel[std::min(channel, held_channels - 1)]];
}

}  // namespace tessera::engine
