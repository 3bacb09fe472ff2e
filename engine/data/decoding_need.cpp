#include "engine/data/decoding_need.h"

#include <vector>

#include "engine/base/in_threads.h"
#include "engine/data/picture_table.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

DecodingNeed most_decoding(const Dataset& dataset, const Detail& detail) {
  const PictureFiles* files = dataset.files();
  if (files == nullptr) {
    return {};
  }
  struct Bytes {
    Index decoding = 0;
    Index cached = 0;
  };
  std::vector<Bytes> bytes(static_cast<std::size_t>(dataset.size()));
  for_each_in_threads(dataset.size(), [&](Index item) {
    try {
      const PictureHeader header = read_picture_header(picture_path(*files, item));
      bytes[static_cast<std::size_t>(item)] = {
          decoding_bytes(header, detail), PictureTable::entry_bytes(held_bytes(header, detail))};
    } catch (const InputError&) {  // counts for nothing
    }
  });
  DecodingNeed need{.pictures = dataset.size()};
  for (Index item = 0; item < dataset.size(); ++item) {
    const Bytes& its = bytes[static_cast<std::size_t>(item)];
    if (its.decoding > need.bytes) {
      need.bytes = its.decoding;
      need.item = item;
    }
    need.cached_bytes += its.cached;
  }
  return need;
}

Index cached_bytes_of_photos(Index photos, const Detail& detail) {
  PictureHeader usual;
  usual.rows = 3000;
  usual.cols = 4000;
  const Index entry = PictureTable::entry_bytes(held_bytes(usual, detail));
  return photos == 0 ? 0 : PictureTable::memory_bytes(photos, photos * entry);
}

}  // namespace tessera::engine
