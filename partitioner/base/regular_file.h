// A regular file, or a symbolic link to one, opened for reading. Pipes, sockets, devices and
// folders are refused before they are opened: opening a pipe waits for a writer, opening some
// devices acts on them, and reading them need not end.
//
// Sizes are those when the file was opened. Files that the system makes as they are read (/proc)
// say 0 and count as empty.

#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "partitioner/base/region.h"

namespace tessera {

// What this is and cannot be read as a file, "a folder", "a named pipe"; empty for a regular file,
// a symbolic link to one, and where there is nothing that could be looked at.
[[nodiscard]] std::string_view irregular_kind(const std::filesystem::path& path);

class RegularFile {
 public:
  // Throws InputError that names the path, what it is, and `what` was expected ("a model file").
  RegularFile(const std::filesystem::path& path, std::string_view what);
  ~RegularFile();
  RegularFile(RegularFile&& other) noexcept;
  RegularFile& operator=(RegularFile&& other) noexcept;
  RegularFile(const RegularFile&) = delete;
  RegularFile& operator=(const RegularFile&) = delete;

  [[nodiscard]] int descriptor() const { return descriptor_; }  // owned by this object
  [[nodiscard]] Index bytes() const { return bytes_; }

 private:
  int descriptor_ = -1;
  Index bytes_ = 0;
};

// All of a regular file of text of at most `most_bytes`, in no more memory than it needs, without
// the byte-order mark of UTF-8 that some programs begin it with; `what` it should have been is for
// the message ("a model file"). Throws InputError.
[[nodiscard]] std::string read_regular_file(const std::filesystem::path& path,
                                            std::string_view what,
                                            Index most_bytes);

}  // namespace tessera
