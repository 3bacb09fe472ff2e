// A reduced picture as bytes that are the same on every machine: in memory that ranks share, and in
// files that outlast a run.
//
// Numbers are of 32 bits, the least significant byte first:
//   0  "tespic02"
//   8  checksum of all that follows, XXH3 of 64 bits
//   16 rows, columns, reduction, held rows, held columns, held channels, lead rows, lead columns
//   48 the content's key, 64 bits twice, the higher first
//   64 pixels, as in Picture
// What channels were asked for is not in it: a grey and a colour model find the same.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "engine/data/pictures/picture.h"

namespace tessera::engine {

inline constexpr Index kEntryHeadBytes = 64;

using EntryHead = std::array<std::uint8_t, kEntryHeadBytes>;

// Tells files of pictures apart by their bytes, and what is made of them by the decoders that do.
struct ContentKey {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
};
[[nodiscard]] ContentKey content_key(std::span<const std::uint8_t> file);

// What comes in front of the pixels of a picture of that content.
[[nodiscard]] EntryHead entry_head(const Picture& picture, const ContentKey& content);

// The picture of an entry, to which `channels` are asked for, with pixels that lie in the entry.
// Nothing where that is not one, is of another content, has another length than it says or, where
// it is to be checked, another checksum.
[[nodiscard]] std::optional<Picture> picture_of_entry(std::span<const std::uint8_t> entry,
                                                      const ContentKey& content,
                                                      Index channels,
                                                      bool checked);

}  // namespace tessera::engine
