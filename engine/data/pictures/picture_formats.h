// The decoders of picture.h, one a format, each a thin layer over its library. All take the bytes
// of a file that starts as files of the format do, and throw PictureFault where they cannot be
// used.
//
// X_header reads what is wanted from the file's beginning; read_X decodes the picture into a
// builder, row by row where the library can.

#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

#include "engine/data/pictures/picture_builder.h"

namespace tessera::engine {

using FileBytes = std::span<const std::uint8_t>;

// What is wrong with a picture, as a sentence without the file's name.
class PictureFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The file ends before the picture does.
class PictureCutOff : public PictureFault {
 public:
  PictureCutOff()
      : PictureFault(
            "this picture is cut off before its end: download it again, or remove it from the data "
            "set") {}
};

// `reason` is the decoder's.
class PictureDamaged : public PictureFault {
 public:
  explicit PictureDamaged(const std::string& reason)
      : PictureFault("this picture is damaged and cannot be decoded (" + reason +
                     "): download it again, or remove it from the data set") {}
};

[[nodiscard]] PictureHeader jpeg_header(FileBytes file);
[[nodiscard]] PictureHeader png_header(FileBytes file);
[[nodiscard]] PictureHeader webp_header(FileBytes file);
[[nodiscard]] PictureHeader gif_header(FileBytes file);
[[nodiscard]] PictureHeader bmp_header(FileBytes file);

// Of the libraries, another release of which may round differently.
[[nodiscard]] std::uint64_t jpeg_decoder_version();
[[nodiscard]] std::uint64_t webp_decoder_version();

// A picture of `channels`, reduced by `reduction`.
[[nodiscard]] Picture read_jpeg(FileBytes file,
                                const PictureHeader& header,
                                Index channels,
                                Index reduction);
[[nodiscard]] Picture read_png(FileBytes file,
                               const PictureHeader& header,
                               Index channels,
                               Index reduction);
[[nodiscard]] Picture read_webp(FileBytes file,
                                const PictureHeader& header,
                                Index channels,
                                Index reduction);
[[nodiscard]] Picture read_gif(FileBytes file,
                               const PictureHeader& header,
                               Index channels,
                               Index reduction);
[[nodiscard]] Picture read_bmp(FileBytes file,
                               const PictureHeader& header,
                               Index channels,
                               Index reduction);

// The orientation, 1 to 8, that an EXIF block says; 1 where it says none. `exif` starts with its
// byte order, with or without "Exif" before it.
[[nodiscard]] int exif_orientation(FileBytes exif);

}  // namespace tessera::engine
