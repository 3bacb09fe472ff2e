#include "engine/cli/drawn_pictures.h"

#include <fmt/format.h>
#include <system_error>

#include "engine/files/atomic_file.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/path_kinds.h"

namespace tessera::engine {

DrawnPictures::DrawnPictures(std::filesystem::path folder) : folder_(std::move(folder)) {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  const bool there = !error && is_folder(folder_);
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

std::string DrawnPictures::add(const std::string& name, const std::vector<std::byte>& png) {
  const std::filesystem::path file =
      folder_ / (free_name(std::filesystem::path(name).stem().string()) + ".png");
  write_atomically(file, {reinterpret_cast<const char*>(png.data()), png.size()});
  return file.string();
}

std::string DrawnPictures::free_name(const std::string& stem) {
  std::string name = stem;
  for (int number = 2; !taken_.insert(name).second; ++number) {
    name = fmt::format("{}-{}", stem, number);
  }
  return name;
}

}  // namespace tessera::engine
