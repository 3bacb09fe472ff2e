// What a picture file was when a run began: by it ranks find out that they have other pictures, and
// a rank that one of its own was changed meanwhile.

#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "engine/data/pictures/picture.h"

namespace tessera::engine {

struct PictureRecord {
  Index bytes = -1;           // size of the file; -1: there is none
  std::uint64_t change = 0;   // differs after every change on this machine; means nothing elsewhere
  std::uint64_t content = 0;  // digest of the file, or of its beginning and end
  bool has_content = false;   // whether `content` was looked for
  bool lacks_end = false;     // the end of the file is none of a picture
};

struct PictureRecords {
  std::vector<PictureRecord> pictures;
  bool whole = false;  // whether `content` is of whole files
};

// Size and change; nothing is opened. Whatever is not a regular file counts as none.
[[nodiscard]] PictureRecord record_of(const std::filesystem::path& path);

// The digest of the whole file, or of its size, first and last KiB. Throws InputError.
[[nodiscard]] std::uint64_t content_digest(const std::filesystem::path& path, bool whole);

// Throws InputError where the file is another one than it was.
void expect_unchanged(const std::filesystem::path& path, const PictureRecord& before, bool whole);

}  // namespace tessera::engine
