#include "engine/data/decoding_need.h"

#include <algorithm>
#include <vector>

#include "engine/base/in_threads.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

DecodingNeed most_decoding(const Dataset& dataset, const Detail& detail) {
  const PictureFiles* files = dataset.files();
  if (files == nullptr) {
    return {};
  }
  std::vector<Index> bytes(static_cast<std::size_t>(dataset.size()));
  for_each_in_threads(dataset.size(), [&](Index item) {
    try {
      bytes[static_cast<std::size_t>(item)] =
          decoding_bytes(read_picture_header(picture_path(*files, item)), detail);
    } catch (const InputError&) {  // counts for nothing
    }
  });
  const auto most = std::max_element(bytes.begin(), bytes.end());
  return most == bytes.end() || *most == 0 ? DecodingNeed{}
                                           : DecodingNeed{*most, most - bytes.begin()};
}

}  // namespace tessera::engine
