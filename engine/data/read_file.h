// Whole files into memory, and the lines of text files. Every failure is an InputError that names
// the file.

#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "partitioner/region.h"

namespace engine {

// The whole file; one larger than `limit` bytes is an error.
[[nodiscard]] std::vector<std::uint8_t> read_bytes(const std::filesystem::path& path,
                                                   partitioner::Index limit);

// The lines of a text file that hold something other than spaces, without spaces at either end.
// Kept as the file's bytes with 12 bytes per line: a list of a million pictures is one of these.
class TextLines {
 public:
  explicit TextLines(const std::filesystem::path& path);

  [[nodiscard]] partitioner::Index size() const {
    return static_cast<partitioner::Index>(lines_.size());
  }
  [[nodiscard]] std::string_view text(partitioner::Index line) const;
  // Where in the file, counted from 1.
  [[nodiscard]] int number(partitioner::Index line) const;

 private:
  struct Line {
    std::uint32_t begin;
    std::uint32_t size;
    int number;
  };
  std::vector<std::uint8_t> bytes_;
  std::vector<Line> lines_;
};

}  // namespace engine
