#include "engine/data/pictures/byte_pictures.h"

#include <algorithm>

#include "partitioner/base/errors.h"

namespace tessera::engine {

void remove_items(const std::vector<Index>& items, BytePictures& pictures) {
  const auto volume = static_cast<std::ptrdiff_t>(pictures.shape.volume());
  const Index size = pictures.size();
  auto next = items.begin();
  Index kept = 0;
  for (Index item = 0; item < size; ++item) {
    if (next != items.end() && *next == item) {
      ++next;
      continue;
    }
    if (kept < item) {
      const std::uint8_t* const pixels = pictures.pixels.data() + item * volume;
      std::copy(pixels, pixels + volume, pictures.pixels.data() + kept * volume);
      if (!pictures.labels.empty()) {
        pictures.labels[static_cast<std::size_t>(kept)] =
            pictures.labels[static_cast<std::size_t>(item)];
      }
    }
    ++kept;
  }
  pictures.pixels.resize(static_cast<std::size_t>(kept * volume));
  pictures.labels.resize(pictures.labels.empty() ? 0 : static_cast<std::size_t>(kept));
}

void reserve(Index items, BytePictures& pictures) {
  pictures.pixels.reserve(static_cast<std::size_t>(items * pictures.shape.volume()));
  pictures.labels.reserve(static_cast<std::size_t>(items));
}

void add_pictures(const BytePictures& more, BytePictures& pictures) {
  expects(more.shape == pictures.shape, "pictures of one shape");
  pictures.pixels.insert(pictures.pixels.end(), more.pixels.begin(), more.pixels.end());
  pictures.labels.insert(pictures.labels.end(), more.labels.begin(), more.labels.end());
}

}  // namespace tessera::engine
