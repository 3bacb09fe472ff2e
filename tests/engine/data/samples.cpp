#include "tests/engine/data/samples.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <jpeglib.h>
#include <png.h>
#include <zlib.h>

#include "engine/base/random.h"

namespace tessera::tests {

namespace fs = std::filesystem;

void write_bytes(const fs::path& path, const Bytes& bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

void write_text(const fs::path& path, const std::string& text) {
  write_bytes(path, Bytes(text.begin(), text.end()));
}

void write_gzip(const fs::path& path, const Bytes& bytes) {
  fs::create_directories(path.parent_path());
  const gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
}

Bytes read_back(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

Bytes idx_bytes(const std::vector<std::uint32_t>& sizes, const Bytes& values) {
  Bytes bytes = {0, 0, 8, static_cast<std::uint8_t>(sizes.size())};
  for (const std::uint32_t size : sizes) {
    for (const unsigned shift : {24U, 16U, 8U, 0U}) {
      bytes.push_back(static_cast<std::uint8_t>(size >> shift));
    }
  }
  bytes.insert(bytes.end(), values.begin(), values.end());
  return bytes;
}

Bytes random_bytes(Index size, std::uint64_t seed) {
  Bytes bytes;
  for (Index i = 0; i < size; ++i) {
    bytes.push_back(
        static_cast<std::uint8_t>(engine::random_bits(seed, static_cast<std::uint64_t>(i)) >> 56U));
  }
  return bytes;
}

void write_png(const fs::path& path, int rows, int cols, int channels, const Bytes& pixels) {
  constexpr png_uint_32 kFormats[] = {
      PNG_FORMAT_GRAY, PNG_FORMAT_GA, PNG_FORMAT_RGB, PNG_FORMAT_RGBA};
  fs::create_directories(path.parent_path());
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(cols);
  image.height = static_cast<png_uint_32>(rows);
  image.format = kFormats[channels - 1];
  png_image_write_to_file(&image, path.c_str(), 0, pixels.data(), 0, nullptr);
}

void write_jpeg(const fs::path& path, int rows, int cols, int channels, const Bytes& pixels) {
  constexpr int kQuality = 100;
  jpeg_compress_struct state{};
  jpeg_error_mgr errors{};
  state.err = jpeg_std_error(&errors);
  jpeg_create_compress(&state);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&state, &bytes, &size);
  state.image_width = static_cast<JDIMENSION>(cols);
  state.image_height = static_cast<JDIMENSION>(rows);
  state.input_components = channels;
  state.in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&state);
  jpeg_set_quality(&state, kQuality, TRUE);
  jpeg_start_compress(&state, TRUE);
  for (int row = 0; row < rows; ++row) {
    Bytes line(pixels.begin() + std::ptrdiff_t{row} * cols * channels,
               pixels.begin() + std::ptrdiff_t{row + 1} * cols * channels);
    JSAMPROW start = line.data();
    jpeg_write_scanlines(&state, &start, 1);
  }
  jpeg_finish_compress(&state);
  jpeg_destroy_compress(&state);
  write_bytes(path, Bytes(bytes, bytes + size));
  std::free(bytes);
}

void mend_png_checksum(Bytes& png, std::size_t at) {
  const std::size_t length = png_get_uint_32(&png[at]);
  const auto sum =
      static_cast<png_uint_32>(crc32(0, &png[at + 4], static_cast<unsigned>(length + 4)));
  png_save_uint_32(&png[at + 8 + length], sum);
}

namespace {

// An EXIF block that says nothing but how a picture is to be turned.
Bytes exif(int orientation) {
  return {'M',  'M',  0, 42, 0, 0, 0, 8, 0, 1,
          0x01, 0x12, 0, 3,  0, 0, 0, 1, 0, static_cast<std::uint8_t>(orientation),
          0,    0,    0, 0,  0, 0};
}

}  // namespace

Bytes turned_jpeg(Bytes file, int orientation) {
  Bytes segment = {0xff, 0xe1, 0, 0, 'E', 'x', 'i', 'f', 0, 0};
  const Bytes block = exif(orientation);
  segment.insert(segment.end(), block.begin(), block.end());
  segment[3] = static_cast<std::uint8_t>(segment.size() - 2);
  file.insert(file.begin() + 2, segment.begin(), segment.end());
  return file;
}

Bytes turned_png(Bytes file, int orientation) {
  constexpr std::size_t kEndBytes = 12;
  Bytes chunk = {0, 0, 0, 0, 'e', 'X', 'I', 'f'};
  const Bytes block = exif(orientation);
  chunk[3] = static_cast<std::uint8_t>(block.size());
  chunk.insert(chunk.end(), block.begin(), block.end());
  chunk.resize(chunk.size() + 4);
  mend_png_checksum(chunk, 0);
  file.insert(file.end() - kEndBytes, chunk.begin(), chunk.end());
  return file;
}

std::vector<float> values_of(const engine::Picture& picture) {
  std::vector<float> values;
  for (Index channel = 0; channel < picture.shape.channels; ++channel) {
    for (Index row = 0; row < picture.held_rows; ++row) {
      for (Index col = 0; col < picture.held_cols; ++col) {
        values.push_back(picture.value(channel, row, col));
      }
    }
  }
  return values;
}

engine::Picture picture_of(const partitioner::MapShape& shape, const Bytes& planes) {
  return engine::picture_of_planes(planes, shape, shape.channels);
}

engine::Picture random_picture(const partitioner::MapShape& shape, std::uint64_t seed) {
  return picture_of(shape, random_bytes(shape.volume(), seed));
}

}  // namespace tessera::tests
