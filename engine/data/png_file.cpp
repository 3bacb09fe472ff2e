#include "engine/data/png_file.h"

#include <png.h>

#include "partitioner/base/errors.h"

namespace tessera::engine {

std::vector<std::byte> png_of(const RgbPicture& picture) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(picture.cols);
  image.height = static_cast<png_uint_32>(picture.rows);
  image.format = PNG_FORMAT_RGB;
  std::vector<std::byte> file(PNG_IMAGE_PNG_SIZE_MAX(image));
  png_alloc_size_t size = file.size();
  const int written =
      png_image_write_to_memory(&image, file.data(), &size, 0, picture.bytes.data(), 0, nullptr);
  expects(written != 0, "a picture in memory can be written as PNG");
  file.resize(size);
  return file;
}

}  // namespace tessera::engine
