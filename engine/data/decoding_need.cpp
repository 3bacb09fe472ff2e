#include "engine/data/decoding_need.h"

#include "partitioner/errors.h"

namespace engine {

DecodingNeed most_decoding(const Dataset& dataset, const Detail& detail) {
  DecodingNeed most;
  const PictureFiles* files = dataset.files();
  for (Index item = 0; files != nullptr && item < dataset.size(); ++item) {
    try {
      const PictureHeader header = read_picture_header(picture_path(*files, item));
      const Index bytes = decoding_bytes(header, detail);
      if (bytes > most.bytes) {
        most = {bytes, item};
      }
    } catch (const partitioner::InputError&) {
      continue;
    }
  }
  return most;
}

}  // namespace engine
