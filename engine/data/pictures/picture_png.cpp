#include <cstdio>
#include <cstring>
#include <new>
#include <png.h>
#include <vector>

#include "engine/data/pictures/library_call.h"
#include "engine/data/pictures/picture_formats.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

constexpr Index kPngUnpackerBytes = Index{1}
                                    << 17;  // zlib's and libpng's own, whatever the picture
constexpr Index kMostDeflated = 1032;       // deflate packs no more than so many bytes in one

// What is left of a file.
struct Source {
  FileBytes rest;
};

[[noreturn]] void leave_png(png_structp png, png_const_charp message) {
  auto* error = static_cast<LibraryError*>(png_get_error_ptr(png));
  std::snprintf(error->reason.data(), error->reason.size(), "%s", message);
  std::longjmp(error->jump, 1);
}

void ignore_warning(png_structp /*png*/, png_const_charp /*message*/) {}

void read_png_bytes(png_structp png, png_bytep out, std::size_t size) {
  auto* source = static_cast<Source*>(png_get_io_ptr(png));
  if (source->rest.size() < size) {
    static_cast<LibraryError*>(png_get_error_ptr(png))->cut_off = true;
    png_error(png, "the file ends");
  }
  std::memcpy(out, source->rest.data(), size);
  source->rest = source->rest.subspan(size);
}

class PngDecoder {
 public:
  explicit PngDecoder(FileBytes file) : source_{file} {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &error_, leave_png, ignore_warning);
    info_ = png_ == nullptr ? nullptr : png_create_info_struct(png_);
    if (info_ == nullptr) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      throw std::bad_alloc();
    }
    try {
      library_call(error_, [&] { read_info(); });
    } catch (...) {
      png_destroy_read_struct(&png_, &info_, nullptr);
      throw;
    }
  }
  ~PngDecoder() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  [[nodiscard]] PictureHeader header() const {
    PictureHeader header;
    header.format = PictureFormat::Png;
    header.rows = png_get_image_height(png_, info_);
    header.cols = png_get_image_width(png_, info_);
    const bool colour = (png_get_color_type(png_, info_) & PNG_COLOR_MASK_COLOR) != 0;
    header.channels = colour ? 3 : 1;
    header.decoder_bytes = kPngUnpackerBytes + kLines * header.cols;
    if (interlaced()) {
      header.decoder_bytes += header.rows * header.cols * header.channels;
    }
    const Index packed_row = static_cast<Index>(png_get_rowbytes(png_, info_)) + 1;
    header.least_file_bytes = header.rows * packed_row / kMostDeflated;
    return header;
  }

  Picture read(const PictureHeader& header, Index channels, Index reduction) {
    library_call(error_, [&] {
      png_set_palette_to_rgb(png_);
      png_set_expand_gray_1_2_4_to_8(png_);
      png_set_strip_16(png_);
      png_set_strip_alpha(png_);
      (void)png_set_interlace_handling(png_);
      png_read_update_info(png_, info_);
    });
    PictureBuilder builder(header, channels, reduction);
    expects(static_cast<Index>(png_get_rowbytes(png_, info_)) == builder.row_bytes(),
            "libpng gives bytes of the header's channels");
    if (interlaced()) {
      read_interlaced(builder);
    } else {
      read_rows(builder);
    }
    library_call(error_, [&] { png_read_end(png_, nullptr); });  // with the last checksums
    return builder.finish();
  }

 private:
  // Rows as they are in the file, unfiltered and converted, of 16 bits and four channels at most.
  static constexpr Index kLines = 4 * 8;

  void read_info() {
    constexpr png_byte kTransparency[] = {'t', 'R', 'N', 'S', 0};
    png_set_read_fn(png_, &source_, read_png_bytes);
    png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // checked_header has its own
    png_set_crc_action(png_, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    png_set_benign_errors(png_, 0);
    // Notes beside the pixels are not looked at: some unpack to any size.
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, kTransparency, 1);
    png_read_info(png_, info_);
  }

  [[nodiscard]] bool interlaced() const {
    return png_get_interlace_type(png_, info_) != PNG_INTERLACE_NONE;
  }

  void read_rows(PictureBuilder& builder) {
    std::vector<std::uint8_t> row(static_cast<std::size_t>(builder.row_bytes()));
    for (Index i = 0; i < builder.rows(); ++i) {
      library_call(error_, [&] { png_read_row(png_, row.data(), nullptr); });
      builder.add_row(row);
    }
  }

  // Every pass goes over the whole picture.
  void read_interlaced(PictureBuilder& builder) {
    const auto row_bytes = static_cast<std::size_t>(builder.row_bytes());
    std::vector<std::uint8_t> all(row_bytes * static_cast<std::size_t>(builder.rows()));
    for (int pass = 0; pass < PNG_INTERLACE_ADAM7_PASSES; ++pass) {
      for (std::size_t at = 0; at < all.size(); at += row_bytes) {
        library_call(error_, [&] { png_read_row(png_, all.data() + at, nullptr); });
      }
    }
    for (std::size_t at = 0; at < all.size(); at += row_bytes) {
      builder.add_row(FileBytes(all).subspan(at, row_bytes));
    }
  }

  Source source_;
  LibraryError error_{};
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

// The content of the eXIf chunk, wherever it stands; empty where there is none.
FileBytes png_exif(FileBytes file) {
  std::size_t at = 8;
  while (at + 12 <= file.size()) {  // length, name, content, checksum
    const std::size_t length = png_get_uint_32(file.data() + at);
    if (length > file.size() - at - 12) {
      break;
    }
    if (std::memcmp(file.data() + at + 4, "eXIf", 4) == 0) {
      return file.subspan(at + 8, length);
    }
    at += length + 12;
  }
  return {};
}

}  // namespace

PictureHeader png_header(FileBytes file) {
  PictureHeader header = PngDecoder(file).header();
  header.orientation = exif_orientation(png_exif(file));
  return header;
}

Picture read_png(FileBytes file, const PictureHeader& header, Index channels, Index reduction) {
  return PngDecoder(file).read(header, channels, reduction);
}

}  // namespace tessera::engine
