#include "engine/data/picture.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <fmt/format.h>
#include <memory>
#include <optional>

#include "engine/data/read_file.h"
#include "partitioner/errors.h"

// The decoder is compiled here and not taken from the system's library: its memory must start as
// zeros. A damaged JPEG can have it use tables that the file does not define, or leave parts of the
// picture undecoded; with zeros that is the same picture on every rank, and no read outside the
// tables.
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_JPEG
#define STBI_ONLY_PNG
#define STBI_NO_STDIO
#define STBI_MALLOC(size) std::calloc(1, size)
#define STBI_REALLOC(memory, size) std::realloc(memory, size)
#define STBI_FREE(memory) std::free(memory)
#include <stb/stb_image.h>

namespace engine {

namespace {

constexpr Index kMaxPixels = Index{1} << 26;
constexpr Index kMaxFileBytes = Index{1} << 29;

// In integers, so that every machine gives the same bits.
float luma(unsigned red, unsigned green, unsigned blue) {
  return static_cast<float>(299 * red + 587 * green + 114 * blue) / 255000.0F;
}

float value_of(std::uint8_t byte) {
  return static_cast<float>(byte) / 255.0F;
}

// Bytes with a step between channels and one between pixels: planes or interleaved.
struct PixelBytes {
  const std::uint8_t* bytes;
  Index source_channels;
  Index channel_step;
  Index pixel_step;
};

Picture convert(const PixelBytes& source, Index rows, Index cols, Index channels) {
  const Index pixels = rows * cols;
  Picture picture{{channels, rows, cols},
                  std::vector<float>(static_cast<std::size_t>(channels * pixels))};
  float* out = picture.values.data();
  if (channels == 1 && source.source_channels == 3) {
    for (Index i = 0; i < pixels; ++i) {
      const std::uint8_t* pixel = source.bytes + i * source.pixel_step;
      out[i] = luma(pixel[0], pixel[source.channel_step], pixel[2 * source.channel_step]);
    }
    return picture;
  }
  for (Index channel = 0; channel < channels; ++channel) {
    const Index from = std::min(channel, source.source_channels - 1);
    for (Index i = 0; i < pixels; ++i) {
      out[channel * pixels + i] =
          value_of(source.bytes[from * source.channel_step + i * source.pixel_step]);
    }
  }
  return picture;
}

bool starts_with(std::span<const std::uint8_t> file, std::span<const std::uint8_t> magic) {
  return file.size() >= magic.size() && std::equal(magic.begin(), magic.end(), file.begin());
}

// The place of the next marker's 0xff, from `at` inside compressed values: there 0xff is followed
// by 0 or a restart.
std::size_t end_of_scan(std::span<const std::uint8_t> file, std::size_t at) {
  while (at + 1 < file.size()) {
    const std::uint8_t next = file[at + 1];
    const bool restart = next >= 0xd0 && next <= 0xd7;
    if (file[at] == 0xff && next != 0 && next != 0xff && !restart) {
      return at;
    }
    ++at;
  }
  return file.size();
}

// Whether the Huffman tables of one segment have at most 256 codes and end with it. The decoder
// does not check.
bool huffman_tables_fit(std::span<const std::uint8_t> tables) {
  constexpr std::size_t kHead =
      17;  // which table, then how many codes of each length from 1 to 16 bits
  constexpr std::size_t kMostCodes = 256;
  while (tables.size() >= kHead) {
    std::size_t codes = 0;
    for (const std::uint8_t count : tables.subspan(1, kHead - 1)) {
      codes += count;
    }
    if (codes > kMostCodes || codes > tables.size() - kHead) {
      return false;
    }
    tables = tables.subspan(kHead + codes);
  }
  return tables.empty();
}

// What is wrong with the segments of a JPEG, if anything. The decoder takes the end of the file for
// the end marker and leaves the rest of the picture grey; and an embedded thumbnail has an end
// marker of its own, so segments are skipped.
std::optional<std::string> jpeg_fault(std::span<const std::uint8_t> file) {
  constexpr std::uint8_t kHuffmanTables = 0xc4;
  constexpr std::uint8_t kEndOfImage = 0xd9;
  constexpr std::uint8_t kStartOfScan = 0xda;
  std::size_t at = 2;
  while (at + 2 <= file.size()) {
    if (file[at] != 0xff) {
      return "is damaged";
    }
    const std::uint8_t marker = file[at + 1];
    if (marker == 0xff) {  // fill byte
      ++at;
      continue;
    }
    if (marker == kEndOfImage) {
      return std::nullopt;
    }
    if (at + 4 > file.size()) {
      break;
    }
    const std::size_t length = (std::size_t{file[at + 2]} << 8U) + file[at + 3];
    if (length < 2) {
      return "is damaged";
    }
    if (length > file.size() - at - 2) {
      break;
    }
    if (marker == kHuffmanTables && !huffman_tables_fit(file.subspan(at + 4, length - 2))) {
      return "is damaged";
    }
    at += 2 + length;
    if (marker == kStartOfScan) {
      at = end_of_scan(file, at);
    }
  }
  return "is cut off before its end";
}

void check_kind(std::span<const std::uint8_t> file, const std::string& name) {
  static constexpr std::array<std::uint8_t, 3> kJpeg = {0xff, 0xd8, 0xff};
  static constexpr std::array<std::uint8_t, 8> kPng = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  if (starts_with(file, kPng)) {
    return;
  }
  if (!starts_with(file, kJpeg)) {
    throw partitioner::InputError(
        name,
        0,
        "this is neither a JPEG nor a PNG file: convert it, or take it out of the data set");
  }
  if (const std::optional<std::string> fault = jpeg_fault(file)) {
    throw partitioner::InputError(
        name,
        0,
        fmt::format("this JPEG file {}: get it again, or take it out of the data set", *fault));
  }
}

}  // namespace

Picture picture_of_planes(std::span<const std::uint8_t> planes,
                          const partitioner::MapShape& shape,
                          Index channels) {
  partitioner::expects(static_cast<Index>(planes.size()) == shape.volume(),
                       "planes have the size of the shape");
  const PixelBytes source{planes.data(), shape.channels, shape.rows * shape.cols, 1};
  return convert(source, shape.rows, shape.cols, channels);
}

Picture decode_picture(std::span<const std::uint8_t> file,
                       const std::string& name,
                       Index channels) {
  check_kind(file, name);
  const auto damaged = [&] {
    return partitioner::InputError(
        name,
        0,
        fmt::format(
            "this picture cannot be decoded ({}): get it again, or take it out of the data set",
            stbi_failure_reason()));
  };
  if (static_cast<Index>(file.size()) > kMaxFileBytes) {
    throw partitioner::InputError(
        name, 0, "this picture file is larger than 512 MiB: scale it down");
  }
  const int length = static_cast<int>(file.size());
  int cols = 0;
  int rows = 0;
  int found = 0;
  if (stbi_info_from_memory(file.data(), length, &cols, &rows, &found) == 0) {
    throw damaged();
  }
  if (cols < 1 || rows < 1 || Index{cols} * rows > kMaxPixels) {
    throw partitioner::InputError(
        name,
        0,
        fmt::format(
            "this picture says it has {} x {} pixels; at most 2^26 in all are read: scale it down",
            cols,
            rows));
  }
  const std::unique_ptr<stbi_uc, decltype(&stbi_image_free)> pixels(
      stbi_load_from_memory(file.data(), length, &cols, &rows, &found, 0), &stbi_image_free);
  if (pixels == nullptr) {
    throw damaged();
  }
  const PixelBytes source{
      pixels.get(), found >= 3 ? 3 : 1, 1, found};  // the 2nd and 4th channel are transparency
  return convert(source, rows, cols, channels);
}

Picture read_picture_file(const std::filesystem::path& path, Index channels) {
  return decode_picture(read_bytes(path, kMaxFileBytes), path.string(), channels);
}

bool is_picture_name(const std::filesystem::path& path) {
  std::string ending = path.extension().string();
  for (char& letter : ending) {
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

}  // namespace engine
