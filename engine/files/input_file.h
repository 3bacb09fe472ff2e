// A regular file opened for reading at any place, also beyond 2 GiB on 32-bit machines. Reading
// changes no state: several threads may read one InputFile.

#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "engine/processes/descriptor.h"
#include "partitioner/base/region.h"

namespace tessera::engine {

class InputFile {
 public:
  // Throws InputError when the file cannot be opened or is no regular file.
  explicit InputFile(std::filesystem::path path);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] Index size() const { return size_; }  // bytes, when it was opened

  // Assigns bytes [offset, offset + out.size()). Throws InputError when the file ends before.
  void read(Index offset, std::span<std::byte> out) const;

 private:
  std::filesystem::path path_;
  Index size_ = 0;
  Descriptor file_;
};

}  // namespace tessera::engine
