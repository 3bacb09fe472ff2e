// Looks at the picture files of a data set before anything is trained: which are missing, may not
// be read, are broken or the same as another.
//
// A quick look asks for the size of every file and reads the beginning and the end of up to 50,000
// of them; a thorough one decodes all. Several threads look at once. Nothing is thrown for a
// picture.

#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "engine/data/decoding_need.h"
#include "engine/data/pictures/byte_pictures.h"
#include "engine/data/sets/data_problem.h"
#include "engine/data/sets/picture_files.h"
#include "engine/data/sets/picture_record.h"

namespace tessera::engine {

// Sizes of all files.
[[nodiscard]] PictureRecords record_sizes(const PictureFiles& files);

// What to read of the files. The same on all ranks, so that they can compare what they read.
struct ReadingRules {
  Index pictures = 0;     // the most that any rank has
  Index total_bytes = 0;  // the same of their sizes
  // Small sets are read whole.
  [[nodiscard]] bool whole() const { return total_bytes <= Index{256} << 20; }
  // Every picture is read, or one of so many in large data sets.
  [[nodiscard]] Index one_of() const { return whole() ? 1 : 1 + pictures / 50000; }
};

// Adds digests to `records`, which record_sizes() made. `name` of an item decides whether it is
// among those that are read. `known` is empty, or has the digest of each picture that need not be
// read for it, else 0.
void record_contents(const PictureFiles& files,
                     const ReadingRules& rules,
                     PictureRecords& records,
                     std::span<const std::uint64_t> known = {});

struct BadPicture {
  Index item = 0;
  DataProblem problem;
};

// How pictures are looked at.
struct Look {
  bool decode = false;  // all of each picture, else its header, unless its end is missing
  // What decoding may take, of all threads together; one thread decodes in any case.
  Index memory_bytes = std::numeric_limits<Index>::max();
};

// So many threads may each decode a picture that takes `picture_bytes`.
[[nodiscard]] Index decoding_threads(const Look& look, Index picture_bytes);

// Pictures that cannot be used, in rising order, of those that record_contents() read. Gives back
// to the system what decoding took. `headers` is empty, or has what the header of each picture
// says: one that is known and whose content could be read is not opened again, unless to decode it.
[[nodiscard]] std::vector<BadPicture> bad_pictures(const PictureFiles& files,
                                                   const PictureRecords& records,
                                                   const Look& look,
                                                   std::span<const DecodingBytes> headers = {});

// The sizes of pictures whose headers can be read.
struct PictureSizes {
  Index pictures = 0;
  Index least_rows = 0;  // of the picture with the fewest pixels, and so on
  Index least_cols = 0;
  Index most_rows = 0;
  Index most_cols = 0;
  Index decoding_bytes = 0;  // the most that decoding one of them takes, its file included
};
[[nodiscard]] PictureSizes sizes_of(const PictureFiles& files, const Detail& detail);

// Digests of the pictures' contents, 0 where none was looked for: of whole files only, else 0 for
// all; of pictures held as bytes always.
[[nodiscard]] std::vector<std::uint64_t> whole_contents(const PictureRecords& records);
[[nodiscard]] std::vector<std::uint64_t> whole_contents(const BytePictures& pictures);

// An item with the content of one before it, or of one of other pictures.
struct Repeat {
  Index item = 0;
  Index first = 0;
};
[[nodiscard]] std::vector<Repeat> repeats(std::span<const std::uint64_t> contents);
[[nodiscard]] std::vector<Repeat> repeats_of(std::span<const std::uint64_t> contents,
                                             std::span<const std::uint64_t> others);

}  // namespace tessera::engine
