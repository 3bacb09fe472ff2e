// A file in memory with two places for the same kind of content, used in turn: whoever writes one
// of them may be killed at any moment, and the other is whole.
//
// Little endian, of a fixed layout, whatever the machine: a place is a head of 64 bytes, room for a
// text, and floats. The digest of all that makes it count is written last.

#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "engine/processes/descriptor.h"
#include "partitioner/base/region.h"

namespace tessera::engine {

class SlotFile {
 public:
  // Makes the file, with room for so many floats and a text of at most so many bytes. Throws
  // InputError where there is none.
  SlotFile(const std::filesystem::path& path, Index text_bytes, Index floats);
  ~SlotFile();
  SlotFile(const SlotFile&) = delete;
  SlotFile& operator=(const SlotFile&) = delete;

  // Replaces the older of the two contents. The pieces, one after another, are all of the floats.
  void write(Index step,
             const std::string& text,
             const std::vector<std::span<const float>>& pieces);

  // The same in two parts, for floats that come one by one: from begin() on the older content is
  // gone, and with finish() what was put into the returned floats counts.
  [[nodiscard]] std::span<float> begin();
  void finish(Index step, const std::string& text);

  // Of both places.
  [[nodiscard]] Index bytes() const { return static_cast<Index>(bytes_); }

 private:
  [[nodiscard]] std::uint8_t* place() const;
  void finish(Index step, const std::string& text, std::uint64_t floats_digest);

  std::uint8_t* memory_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t text_room_;
  std::size_t floats_;
  int next_ = 0;
};

// Such a file, open to be read, that may be damaged or may have been made by anybody.
class SlotReader {
 public:
  struct Content {
    Index step = 0;
    std::string text;
    Index floats = 0;
    std::uint64_t at = 0;  // of the first float, in bytes
  };

  // Reads all of it once. Files of more than `most_bytes`, and what is no regular file, have
  // nothing in them.
  explicit SlotReader(const std::filesystem::path& path, Index most_bytes = Index{1} << 33U);

  // Those that are whole.
  [[nodiscard]] const std::vector<Content>& contents() const { return contents_; }

  // Assigns floats [begin, begin + to.size()) of a content, which has them. Throws InputError where
  // the file is no longer what it was.
  void read(const Content& content, Index begin, std::span<float> to) const;

 private:
  [[nodiscard]] bool read_bytes(std::uint64_t from, void* to, std::size_t count) const;
  void look_at(std::uint64_t place);

  Descriptor file_;
  std::uint64_t bytes_ = 0;
  std::vector<Content> contents_;
};

}  // namespace tessera::engine
