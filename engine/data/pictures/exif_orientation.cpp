#include <cstring>
#include <libexif/exif-data.h>
#include <limits>
#include <memory>
#include <vector>

#include "engine/data/pictures/picture_formats.h"

namespace tessera::engine {

int exif_orientation(FileBytes exif) {
  constexpr std::size_t kMostBytes = 1U << 20U;  // the note is in the first kilobyte
  constexpr FileBytes::value_type kMark[] = {'E', 'x', 'i', 'f', 0, 0};
  if (exif.size() < sizeof(kMark)) {
    return 1;
  }
  exif = exif.first(std::min(exif.size(), kMostBytes));
  std::vector<std::uint8_t> marked;
  if (std::memcmp(exif.data(), kMark, sizeof(kMark)) != 0) {
    marked.assign(std::begin(kMark), std::end(kMark));
  }
  marked.insert(marked.end(), exif.begin(), exif.end());
  const std::unique_ptr<ExifData, decltype(&exif_data_unref)> data(exif_data_new(),
                                                                   &exif_data_unref);
  if (data == nullptr) {
    return 1;
  }
  exif_data_load_data(data.get(), marked.data(), static_cast<unsigned>(marked.size()));
  const ExifEntry* entry = exif_content_get_entry(data->ifd[EXIF_IFD_0], EXIF_TAG_ORIENTATION);
  if (entry == nullptr || entry->format != EXIF_FORMAT_SHORT || entry->components < 1 ||
      entry->size < sizeof(ExifShort)) {
    return 1;
  }
  const int orientation = exif_get_short(entry->data, exif_data_get_byte_order(data.get()));
  return orientation >= 1 && orientation <= 8 ? orientation : 1;
}

}  // namespace tessera::engine
