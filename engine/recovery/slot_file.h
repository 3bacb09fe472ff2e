// A file in memory with two places for the same kind of content, used in turn: whoever writes one
// of them may be killed at any moment, and the other is whole.
//
// Little endian, of a fixed layout: a place is a head of 64 bytes, a text, and floats. The digest
// of all that makes it count is written last.

#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "partitioner/base/region.h"

namespace tessera::engine {

// What a place holds, written piece by piece.
class SlotFile {
 public:
  // Makes the file, with room for such contents. Throws InputError where there is none.
  SlotFile(const std::filesystem::path& path, Index text_bytes, Index floats);
  ~SlotFile();
  SlotFile(const SlotFile&) = delete;
  SlotFile& operator=(const SlotFile&) = delete;

  // Replaces the older of the two contents. The floats are those of all pieces, one after another;
  // neither they nor the text may be longer than was said.
  void write(Index step,
             const std::string& text,
             const std::vector<std::span<const float>>& pieces);

  [[nodiscard]] Index bytes() const { return static_cast<Index>(bytes_); }

 private:
  std::uint8_t* memory_ = nullptr;
  std::size_t bytes_ = 0;  // of both places
  std::size_t text_bytes_;
  int next_ = 0;
};

struct SlotContent {
  Index step = 0;
  std::string text;
  std::vector<float> floats;
};

// The contents that are whole, of a file that may be damaged or may have been made by anybody;
// empty where there are none. `most_bytes` limits what is read of a file.
[[nodiscard]] std::vector<SlotContent> read_slots(const std::filesystem::path& path,
                                                  Index most_bytes = Index{1} << 33U);

}  // namespace tessera::engine
