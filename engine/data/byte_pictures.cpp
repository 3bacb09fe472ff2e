#include "engine/data/byte_pictures.h"

#include "partitioner/base/errors.h"

namespace tessera::engine {

BytePictures without_items(const BytePictures& pictures, const std::vector<Index>& items) {
  BytePictures rest{pictures.shape, {}, {}, pictures.class_names};
  const auto volume = static_cast<std::ptrdiff_t>(pictures.shape.volume());
  rest.pixels.reserve(pictures.pixels.size() - items.size() * static_cast<std::size_t>(volume));
  auto next = items.begin();
  for (Index item = 0; item < pictures.size(); ++item) {
    if (next != items.end() && *next == item) {
      ++next;
      continue;
    }
    const auto pixels = pictures.pixels.begin() + item * volume;
    rest.pixels.insert(rest.pixels.end(), pixels, pixels + volume);
    if (!pictures.labels.empty()) {
      rest.labels.push_back(pictures.labels[static_cast<std::size_t>(item)]);
    }
  }
  return rest;
}

void add_pictures(const BytePictures& more, BytePictures& pictures) {
  partitioner::expects(more.shape == pictures.shape, "pictures of one shape");
  pictures.pixels.insert(pictures.pixels.end(), more.pixels.begin(), more.pixels.end());
  pictures.labels.insert(pictures.labels.end(), more.labels.begin(), more.labels.end());
}

}  // namespace tessera::engine
