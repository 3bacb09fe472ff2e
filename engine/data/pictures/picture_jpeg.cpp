#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <vector>

#include "engine/data/pictures/library_call.h"
#include "engine/data/pictures/picture_formats.h"
#include "partitioner/base/errors.h"

// Behind <cstdio>, which they need.
#include <jerror.h>
#include <jpeglib.h>

// Only decoding of which libjpeg-turbo promises the same bits on every processor is used: the
// accurate integer transform, also where it reduces, and smooth chroma.

namespace tessera::engine {

namespace {

constexpr int kMostScans = 100;  // of a progressive file; encoders make about ten
constexpr Index kMostDecoderReduction = 8;
constexpr Index kBlock = 8;

struct ErrorManager {
  jpeg_error_mgr base;  // first: the library hands back a pointer to it
  LibraryError error;
};

[[noreturn]] void leave_jpeg(j_common_ptr state) {
  auto* manager = reinterpret_cast<ErrorManager*>(state->err);
  std::array<char, JMSG_LENGTH_MAX> text{};
  manager->base.format_message(state, text.data());
  std::snprintf(manager->error.reason.data(), manager->error.reason.size(), "%s", text.data());
  std::longjmp(manager->error.jump, 1);
}

// A warning (level -1) says that values were lost, or made up where they are missing; some say only
// that a note in the file is odd.
void take_message(j_common_ptr state, int level) {
  const int code = state->err->msg_code;
  if (level >= 0 || code == JWRN_JFIF_MAJOR || code == JWRN_ADOBE_XFORM || code == JWRN_BOGUS_ICC) {
    return;
  }
  reinterpret_cast<ErrorManager*>(state->err)->error.cut_off = code == JWRN_JPEG_EOF;
  leave_jpeg(state);
}

// Each scan goes over the whole picture, however few bytes it has.
void limit_scans(j_common_ptr state) {
  if (reinterpret_cast<j_decompress_ptr>(state)->input_scan_number > kMostScans) {
    auto* manager = reinterpret_cast<ErrorManager*>(state->err);
    std::snprintf(manager->error.reason.data(),
                  manager->error.reason.size(),
                  "more than %d scans",
                  kMostScans);
    std::longjmp(manager->error.jump, 1);
  }
}

// The product of two bytes that stand for 0..1.
std::uint8_t product(unsigned a, unsigned b) {
  return static_cast<std::uint8_t>((a * b + 127) / 255);
}

class JpegDecoder {
 public:
  explicit JpegDecoder(FileBytes file) {
    state_.err = jpeg_std_error(&errors_.base);
    errors_.base.error_exit = leave_jpeg;
    errors_.base.emit_message = take_message;
    progress_.progress_monitor = limit_scans;
    try {
      library_call(errors_.error, [&] {
        jpeg_create_decompress(&state_);
        state_.progress = &progress_;
        jpeg_mem_src(&state_, file.data(), static_cast<unsigned long>(file.size()));
        (void)jpeg_read_header(&state_, TRUE);
      });
    } catch (...) {
      jpeg_destroy_decompress(&state_);
      throw;
    }
  }
  ~JpegDecoder() { jpeg_destroy_decompress(&state_); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  [[nodiscard]] PictureHeader header() const {
    if (state_.num_components != 1 && state_.num_components != 3 && state_.num_components != 4) {
      throw PictureDamaged("a JPEG of " + std::to_string(state_.num_components) + " channels");
    }
    PictureHeader header;
    header.format = PictureFormat::Jpeg;
    header.rows = state_.image_height;
    header.cols = state_.image_width;
    header.channels = state_.num_components == 1 ? 1 : 3;
    Index blocks = 0;
    for (int i = 0; i < state_.num_components; ++i) {
      blocks += Index{state_.comp_info[i].width_in_blocks} * state_.comp_info[i].height_in_blocks;
    }
    // Huffman's codes have a bit at least, one of them a block.
    header.least_file_bytes = state_.arith_code != 0 ? 0 : blocks / 8;
    const Index line = Index{state_.image_width} * state_.num_components;
    constexpr Index kLines = 5 * kBlock;  // samples of a row of blocks and its neighbours
    header.decoder_bytes = kLines * line;
    if (jpeg_has_multiple_scans(const_cast<j_decompress_ptr>(&state_)) != 0) {
      header.decoder_bytes += blocks * static_cast<Index>(sizeof(JBLOCK));
    }
    return header;
  }

  Picture read(const PictureHeader& header, Index channels, Index reduction) {
    const Index own = std::gcd(reduction, kMostDecoderReduction);
    library_call(errors_.error, [&] {
      state_.scale_num = 1;
      state_.scale_denom = static_cast<unsigned>(own);
      state_.dct_method = JDCT_ISLOW;
      state_.do_fancy_upsampling = TRUE;
      state_.do_block_smoothing = FALSE;
      state_.out_color_space = state_.num_components == 1   ? JCS_GRAYSCALE
                               : state_.num_components == 3 ? JCS_RGB
                                                            : JCS_CMYK;
      (void)jpeg_start_decompress(&state_);
    });
    PictureBuilder builder(header, channels, reduction, own);
    expects(builder.rows() == state_.output_height &&
                builder.row_bytes() == state_.output_width * header.channels,
            "libjpeg rounds reduced sizes up");
    std::vector<std::uint8_t> row(static_cast<std::size_t>(Index{state_.output_width} *
                                                           std::max(state_.output_components, 3)));
    for (Index i = 0; i < builder.rows(); ++i) {
      JSAMPROW start = row.data();
      library_call(errors_.error, [&] { (void)jpeg_read_scanlines(&state_, &start, 1); });
      if (state_.num_components == 4) {
        colours_of_inks(row);
      }
      builder.add_row(row);
    }
    library_call(errors_.error, [&] { (void)jpeg_finish_decompress(&state_); });
    return builder.finish();
  }

 private:
  // Cyan, magenta, yellow and black to red, green and blue, in place. Adobe's files hold what is
  // left of the light instead of the ink.
  void colours_of_inks(std::vector<std::uint8_t>& row) const {
    const unsigned whole = state_.saw_Adobe_marker != 0 ? 0 : 255;
    for (std::size_t col = 0; col < state_.output_width; ++col) {
      const unsigned black = row[4 * col + 3] ^ whole;
      for (std::size_t colour = 0; colour < 3; ++colour) {
        row[3 * col + colour] = product(row[4 * col + colour] ^ whole, black);
      }
    }
  }

  jpeg_decompress_struct state_{};
  ErrorManager errors_{};
  jpeg_progress_mgr progress_{};
};

// The EXIF block among the segments before the pixels; empty where there is none.
FileBytes jpeg_exif(FileBytes file) {
  constexpr std::uint8_t kApplication1 = 0xe1;
  constexpr std::uint8_t kStartOfScan = 0xda;
  std::size_t at = 2;
  while (at + 4 <= file.size() && file[at] == 0xff) {
    const std::uint8_t marker = file[at + 1];
    if (marker == 0xff) {  // fill byte
      ++at;
      continue;
    }
    const std::size_t length = (std::size_t{file[at + 2]} << 8U) + file[at + 3];
    if (marker == kStartOfScan || length < 2 || length > file.size() - at - 2) {
      break;
    }
    const FileBytes content = file.subspan(at + 4, length - 2);
    if (marker == kApplication1 && content.size() > 6 &&
        std::memcmp(content.data(), "Exif\0\0", 6) == 0) {
      return content;
    }
    at += 2 + length;
  }
  return {};
}

}  // namespace

std::uint64_t jpeg_decoder_version() {
  return LIBJPEG_TURBO_VERSION_NUMBER;
}

PictureHeader jpeg_header(FileBytes file) {
  PictureHeader header = JpegDecoder(file).header();
  header.orientation = exif_orientation(jpeg_exif(file));
  return header;
}

Picture read_jpeg(FileBytes file, const PictureHeader& header, Index channels, Index reduction) {
  return JpegDecoder(file).read(header, channels, reduction);
}

}  // namespace tessera::engine
