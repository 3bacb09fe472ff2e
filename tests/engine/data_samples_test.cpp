// The definitions of data_samples.h; a *_test.cpp so that the tests of this folder include it.

#include "tests/engine/data_samples.h"

#include <fstream>
#include <iterator>
#include <stb/stb_image_write.h>
#include <zlib.h>

#include "engine/random.h"

namespace tests {

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
  fs::create_directories(path.parent_path());
  stbi_write_png(path.c_str(), cols, rows, channels, pixels.data(), cols * channels);
}

void write_jpeg(const fs::path& path, int rows, int cols, int channels, const Bytes& pixels) {
  constexpr int kQuality = 100;
  fs::create_directories(path.parent_path());
  stbi_write_jpg(path.c_str(), cols, rows, channels, pixels.data(), kQuality);
}

engine::Picture random_picture(const partitioner::MapShape& shape, std::uint64_t seed) {
  engine::Picture picture{shape, {}};
  for (Index i = 0; i < shape.volume(); ++i) {
    picture.values.push_back(
        static_cast<float>(engine::random_uniform(seed, static_cast<std::uint64_t>(i))));
  }
  return picture;
}

}  // namespace tests
