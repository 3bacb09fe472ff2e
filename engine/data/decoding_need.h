// What decoding the pictures of a data set takes, known before any is decoded.

#pragma once

#include <span>
#include <vector>

#include "engine/data/dataset.h"

namespace tessera::engine {

struct DecodingNeed {
  Index bytes = 0;  // the most that one picture takes, its file included
  Index item = -1;  // that picture; -1: none is in a file
  // Of those in files: how many there are, and what a cache of all of them holds.
  Index pictures = 0;
  Index cached_bytes = 0;
};

// What a picture file's header says of decoding it for one Detail.
struct DecodingBytes {
  Index decoding = 0;  // what it takes; 0: not known, or there is no header that can be used
  Index cached = 0;    // what a cache holds of it
};

// Reads the header of each picture of which nothing is known yet; `known` is empty or has an
// element for each.
[[nodiscard]] std::vector<DecodingBytes> decoding_of_each(const PictureFiles& files,
                                                          const Detail& detail,
                                                          std::vector<DecodingBytes> known = {});

// The sum of it; `bytes` has an element for each picture.
[[nodiscard]] DecodingNeed most_decoding(std::span<const DecodingBytes> bytes);

// By the headers of all picture files. Those that cannot be read count for nothing: whoever decodes
// them says why.
[[nodiscard]] DecodingNeed most_decoding(const Dataset& dataset, const Detail& detail);

// What a cache takes in memory of so many photos as cameras usually make them: 12 megapixels, 4:3,
// in colour.
[[nodiscard]] Index cached_bytes_of_photos(Index photos, const Detail& detail);

}  // namespace tessera::engine
