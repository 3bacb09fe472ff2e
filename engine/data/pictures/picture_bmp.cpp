// BMP needs no library: its rows lie in the file as they are. Compressed ones are refused.

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "engine/data/pictures/picture_formats.h"

namespace tessera::engine {

namespace {

constexpr std::size_t kFileHeaderBytes = 14;
constexpr std::size_t kOldHeaderBytes = 12;  // of OS/2, the only one with sizes of 16 bits
constexpr std::size_t kHeaderBytes = 40;

std::uint32_t number(FileBytes file, std::size_t at, std::size_t bytes) {
  if (at > file.size() || bytes > file.size() - at) {
    throw PictureCutOff();
  }
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    value |= std::uint32_t{file[at + i]} << (8 * i);
  }
  return value;
}

struct Layout {
  Index rows = 0;
  Index cols = 0;
  bool top_down = false;
  Index pixels_at = 0;
  Index row_bytes = 0;  // in the file, a multiple of four
  unsigned bits = 0;    // of a pixel
  std::array<std::uint32_t, 3>
      masks{};  // of red, green and blue; none where bytes are blue, green, red
  std::size_t palette_at = 0;
  std::size_t palette_entry = 4;
  std::size_t colours = 0;
};

Layout layout_of(FileBytes file) {
  constexpr std::uint32_t kUncompressed = 0;
  constexpr std::uint32_t kMasks = 3;
  constexpr std::uint32_t kMasksWithAlpha = 6;
  Layout layout;
  layout.pixels_at = number(file, 10, 4);
  const std::size_t header = number(file, kFileHeaderBytes, 4);
  std::uint32_t compression = kUncompressed;
  if (header == kOldHeaderBytes) {
    layout.cols = number(file, 18, 2);
    layout.rows = number(file, 20, 2);
    layout.bits = number(file, 24, 2);
    layout.palette_entry = 3;
  } else if (header >= kHeaderBytes) {
    layout.cols = static_cast<std::int32_t>(number(file, 18, 4));
    layout.rows = static_cast<std::int32_t>(number(file, 22, 4));
    layout.bits = number(file, 28, 2);
    compression = number(file, 30, 4);
  } else {
    throw PictureDamaged("a BMP header of " + std::to_string(header) + " bytes");
  }
  layout.top_down = layout.rows < 0;
  layout.rows = layout.top_down ? -layout.rows : layout.rows;
  const bool masked = compression == kMasks || compression == kMasksWithAlpha;
  const unsigned bits = layout.bits;
  if ((compression != kUncompressed && !masked) || (masked && bits != 16 && bits != 32) ||
      (bits != 1 && bits != 4 && bits != 8 && bits != 16 && bits != 24 && bits != 32)) {
    throw PictureFault("this BMP picture is compressed, or of an unusual kind: save it as PNG");
  }
  if (masked) {
    for (std::size_t i = 0; i < layout.masks.size(); ++i) {
      layout.masks[i] = number(file, kFileHeaderBytes + kHeaderBytes + 4 * i, 4);
    }
  } else if (bits == 16) {
    layout.masks = {0x7c00, 0x3e0, 0x1f};
  }
  if (bits <= 8) {
    layout.palette_at = kFileHeaderBytes + header;
    layout.colours = std::size_t{1} << bits;
    const std::size_t used = header >= kHeaderBytes ? number(file, 46, 4) : 0;
    layout.colours = used > 0 && used < layout.colours ? used : layout.colours;
  }
  constexpr Index kMostSide = Index{1} << 26;  // pictures with more are refused
  if (layout.cols > 0 && std::max(layout.cols, layout.rows) <= kMostSide) {
    layout.row_bytes = (layout.cols * bits + 31) / 32 * 4;
  }
  return layout;
}

// The part of a pixel that a mask names, as a byte.
std::uint8_t masked_byte(std::uint32_t pixel, std::uint32_t mask) {
  if (mask == 0) {
    return 0;
  }
  const std::uint64_t most = mask >> static_cast<unsigned>(std::countr_zero(mask));
  const std::uint64_t part = (pixel & mask) >> static_cast<unsigned>(std::countr_zero(mask));
  return static_cast<std::uint8_t>((255 * part + most / 2) / most);
}

// Where a pixel's colour stands in the palette.
std::size_t palette_entry(const Layout& layout, FileBytes row, std::size_t col) {
  const std::size_t per_byte = 8 / layout.bits;
  const unsigned shift = 8 - layout.bits * static_cast<unsigned>(col % per_byte + 1);
  const std::size_t entry =
      (std::size_t{row[col / per_byte]} >> shift) & ((std::size_t{1} << layout.bits) - 1);
  if (entry >= layout.colours) {
    throw PictureDamaged("a colour that its table does not have");
  }
  return layout.palette_at + entry * layout.palette_entry;
}

// Assigns red, green and blue of a row.
void convert_row(FileBytes file,
                 const Layout& layout,
                 FileBytes row,
                 std::vector<std::uint8_t>& out) {
  const auto cols = static_cast<std::size_t>(layout.cols);
  for (std::size_t col = 0; col < cols; ++col) {
    if (layout.bits == 16 || layout.masks[0] != 0) {
      const std::size_t bytes = layout.bits / 8;
      const std::uint32_t pixel = number(row, col * bytes, bytes);
      for (std::size_t channel = 0; channel < 3; ++channel) {
        out[3 * col + channel] = masked_byte(pixel, layout.masks[channel]);
      }
      continue;
    }
    const FileBytes from = layout.bits <= 8 ? file.subspan(palette_entry(layout, row, col), 3)
                                            : row.subspan(col * layout.bits / 8, 3);
    for (std::size_t channel = 0; channel < 3; ++channel) {
      out[3 * col + channel] = from[2 - channel];
    }
  }
}

}  // namespace

PictureHeader bmp_header(FileBytes file) {
  const Layout layout = layout_of(file);
  PictureHeader header;
  header.format = PictureFormat::Bmp;
  header.rows = layout.rows;
  header.cols = layout.cols;
  header.channels = 3;
  header.decoder_bytes = 3 * layout.cols;
  header.least_file_bytes = layout.pixels_at + layout.row_bytes * layout.rows;
  return header;
}

Picture read_bmp(FileBytes file, const PictureHeader& header, Index channels, Index reduction) {
  const Layout layout = layout_of(file);
  const auto palette_bytes = layout.colours * layout.palette_entry;
  if (palette_bytes > 0) {
    (void)number(file, layout.palette_at + palette_bytes - 1, 1);  // it is there
  }
  PictureBuilder builder(header, channels, reduction);
  std::vector<std::uint8_t> colours(static_cast<std::size_t>(builder.row_bytes()));
  for (Index i = 0; i < layout.rows; ++i) {
    const Index stored = layout.top_down ? i : layout.rows - 1 - i;
    const FileBytes row =
        file.subspan(static_cast<std::size_t>(layout.pixels_at + stored * layout.row_bytes),
                     static_cast<std::size_t>(layout.row_bytes));
    convert_row(file, layout, row, colours);
    builder.add_row(colours);
  }
  return builder.finish();
}

}  // namespace tessera::engine
