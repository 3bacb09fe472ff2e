// A picture: what the data sets give, one at a time, and what the network's input is rendered from.
//
// Values are (C, H, W), row by row, 0..1. Pictures are converted to the channels that the network
// wants: colour to grey by Rec. 601 luma, grey to colour by repetition. Files are JPEG (8 bits,
// also grey and CMYK) or PNG; transparency is dropped, 16-bit PNG is read as 8 bits, and a camera's
// note of which side is up is not followed.

#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "partitioner/network.h"

namespace engine {

using partitioner::Index;

struct Picture {
  partitioner::MapShape shape;
  std::vector<float> values;
};

// Of `shape.channels` (1 or 3) planes of bytes, (C, H, W), a picture of `channels` (1 or 3).
[[nodiscard]] Picture picture_of_planes(std::span<const std::uint8_t> planes,
                                        const partitioner::MapShape& shape,
                                        Index channels);

// Decodes the bytes of a JPEG or PNG file. Throws InputError that starts with `name` when they are
// damaged, cut off (also where a decoder would fill in grey), of another format, or larger than
// 2^26 pixels.
[[nodiscard]] Picture decode_picture(std::span<const std::uint8_t> file,
                                     const std::string& name,
                                     Index channels);

// Reads and decodes one such file.
[[nodiscard]] Picture read_picture_file(const std::filesystem::path& path, Index channels);

// Whether the file's name ends in .jpg, .jpeg or .png, in capitals or not.
[[nodiscard]] bool is_picture_name(const std::filesystem::path& path);

}  // namespace engine
