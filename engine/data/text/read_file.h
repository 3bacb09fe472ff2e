// Whole files into memory, and the lines of text files. Only regular files are opened, never a pipe
// or a device. Every failure is an InputError that names the file and repeats nothing of what is in
// it: the path may lead to a file that is not the user's data.

#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "partitioner/base/region.h"

namespace tessera::engine {

// The whole file; one larger than `limit` bytes is an error. `what` was expected is for messages.
[[nodiscard]] std::vector<std::uint8_t> read_bytes(const std::filesystem::path& path,
                                                   Index limit,
                                                   std::string_view what = "a file");

// The lines of a text file that hold something other than spaces, without spaces at either end.
// Lines end as on any system; UTF-16 becomes UTF-8, and a byte-order mark is left out. A zero byte
// is an error.
// Kept as the file's bytes with 12 bytes per line: a list of a million pictures is one of these.
class TextLines {
 public:
  explicit TextLines(const std::filesystem::path& path, std::string_view what = "a text file");

  [[nodiscard]] Index size() const { return static_cast<Index>(lines_.size()); }
  [[nodiscard]] std::string_view text(Index line) const;
  // Where in the file, counted from 1.
  [[nodiscard]] int number(Index line) const;

 private:
  struct Line {
    std::uint32_t begin;
    std::uint32_t size;
    int number;
  };
  // Adds the bytes [begin, end) as a line, where they hold something.
  void add_line(std::size_t begin, std::size_t end, int number, const std::filesystem::path& path);

  std::vector<std::uint8_t> bytes_;
  std::vector<Line> lines_;
};

}  // namespace tessera::engine
