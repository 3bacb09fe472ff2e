// Small data sets and damaged files, written where a test wants them.

#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/data/pictures/picture.h"

namespace tessera::tests {

using Bytes = std::vector<std::uint8_t>;

// Assigns the bytes to the file, making its folders first.
void write_bytes(const std::filesystem::path& path, const Bytes& bytes);
void write_text(const std::filesystem::path& path, const std::string& text);
void write_gzip(const std::filesystem::path& path, const Bytes& bytes);
[[nodiscard]] Bytes read_back(const std::filesystem::path& path);

// An IDX file of these sizes and values, whether or not they fit each other.
[[nodiscard]] Bytes idx_bytes(const std::vector<std::uint32_t>& sizes, const Bytes& values);

// `size` bytes that differ by `seed`.
[[nodiscard]] Bytes random_bytes(Index size, std::uint64_t seed);

// `pixels` are (H, W, C), C from 1 to 4.
void write_png(
    const std::filesystem::path& path, int rows, int cols, int channels, const Bytes& pixels);
void write_jpeg(
    const std::filesystem::path& path, int rows, int cols, int channels, const Bytes& pixels);

// The checksum of a PNG chunk that starts at `at` is corrected.
void mend_png_checksum(Bytes& png, std::size_t at);

// The same picture file with an EXIF block that says how it is to be turned.
[[nodiscard]] Bytes turned_jpeg(Bytes file, int orientation);
[[nodiscard]] Bytes turned_png(Bytes file, int orientation);

// Of a picture that is held whole: (C, H, W), 0..1.
[[nodiscard]] std::vector<float> values_of(const engine::Picture& picture);

// A picture of these bytes, (C, H, W), C 1 or 3.
[[nodiscard]] engine::Picture picture_of(const partitioner::MapShape& shape, const Bytes& planes);

// A picture of random bytes.
[[nodiscard]] engine::Picture random_picture(const partitioner::MapShape& shape,
                                             std::uint64_t seed);

}  // namespace tessera::tests
