// Follows a text file that another process appends to: hands out each whole line once.

#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <sys/types.h>

#include "partitioner/base/region.h"

namespace tessera::engine {

class LineFollower {
 public:
  explicit LineFollower(std::filesystem::path path) : path_(std::move(path)) {}

  // Calls line() for each new line, without its line break, the last one only once it is whole.
  // Where the file is another one than at the last call, or shorter, `restart` is called first and
  // lines are read from its start. A file that is missing, or is not a regular file, has no lines;
  // neither has one that vanished: earlier lines stay valid. Returns whether anything was called.
  bool read(const std::function<void(std::string_view line)>& line,
            const std::function<void()>& restart);

  // Whether the file ends in half a line, or in one that is too long to be one.
  [[nodiscard]] bool is_cut_off() const { return !half_.empty() || too_long_; }

 private:
  bool take(std::string_view chunk, const std::function<void(std::string_view)>& line);
  void add_half(std::string_view text);

  std::filesystem::path path_;
  dev_t device_ = 0;  // the file that was read
  ino_t inode_ = 0;
  std::int64_t offset_ = 0;  // read until there
  std::string half_;         // the start of a line of which the end is not there yet
  bool too_long_ = false;    // that line is longer than any is: it is left out
};

}  // namespace tessera::engine
