#include "engine/data/decoding_need.h"

#include <utility>
#include <vector>

#include "engine/base/in_threads.h"
#include "engine/data/cache/picture_table.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

std::vector<DecodingBytes> decoding_of_each(const PictureFiles& files,
                                            const Detail& detail,
                                            std::vector<DecodingBytes> known) {
  known.resize(static_cast<std::size_t>(files.paths.size()));
  for_each_in_threads(files.paths.size(), [&](Index item) {
    DecodingBytes& its = known[static_cast<std::size_t>(item)];
    if (its.decoding > 0) {
      return;
    }
    try {
      const PictureHeader header = read_picture_header(picture_path(files, item));
      its = {decoding_bytes(header, detail), PictureTable::entry_bytes(held_bytes(header, detail))};
    } catch (const InputError&) {  // counts for nothing
    }
  });
  return known;
}

DecodingNeed most_decoding(std::span<const DecodingBytes> bytes) {
  DecodingNeed need{.pictures = std::ssize(bytes)};
  for (Index item = 0; item < std::ssize(bytes); ++item) {
    const DecodingBytes& its = bytes[static_cast<std::size_t>(item)];
    if (its.decoding > need.bytes) {
      need.bytes = its.decoding;
      need.item = item;
    }
    need.cached_bytes += its.cached;
  }
  return need;
}

DecodingNeed most_decoding(const Dataset& dataset, const Detail& detail) {
  const PictureFiles* files = dataset.files();
  return files == nullptr ? DecodingNeed{} : most_decoding(decoding_of_each(*files, detail));
}

Index cached_bytes_of_photos(Index photos, const Detail& detail) {
  PictureHeader usual;
  usual.rows = 3000;
  usual.cols = 4000;
  const Index entry = PictureTable::entry_bytes(held_bytes(usual, detail));
  return photos == 0 ? 0 : PictureTable::memory_bytes(photos, photos * entry);
}

}  // namespace tessera::engine
