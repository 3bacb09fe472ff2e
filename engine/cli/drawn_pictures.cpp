#include "engine/cli/drawn_pictures.h"

#include <fmt/format.h>
#include <system_error>

#include "engine/data/captioned_picture.h"
#include "engine/files/atomic_file.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

DrawnPictures::DrawnPictures(std::filesystem::path folder) : folder_(std::move(folder)) {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  const bool there = !error && std::filesystem::is_directory(folder_, error);
  if (!there || error) {
    throw InputError(fmt::format("--out {}: cannot create this folder: choose a writable one",
                                 folder_.string()));
  }
  if (!std::filesystem::is_empty(folder_, error) || error) {
    throw InputError(
        fmt::format("--out {}: this folder is not empty: give a new one, so that no "
                    "picture is overwritten",
                    folder_.string()));
  }
}

bool DrawnPictures::add(const std::string& name,
                        const Picture& picture,
                        const std::string& caption) {
  const auto [png, unknown] = captioned_picture(picture, caption);
  add(name, png);
  return unknown == 0;
}

void DrawnPictures::add(const std::string& name, const std::vector<std::byte>& png) {
  write_atomically(folder_ / (free_name(std::filesystem::path(name).stem().string()) + ".png"),
                   {reinterpret_cast<const char*>(png.data()), png.size()});
}

std::string DrawnPictures::free_name(const std::string& stem) {
  std::string name = stem;
  for (int number = 2; !taken_.insert(name).second; ++number) {
    name = fmt::format("{}-{}", stem, number);
  }
  return name;
}

}  // namespace tessera::engine
