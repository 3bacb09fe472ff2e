#include "engine/data/picture_files.h"

#include <system_error>

#include "engine/data/read_file.h"
#include "partitioner/errors.h"

namespace engine {

namespace fs = std::filesystem;

void PathList::add(std::string_view path) {
  text_ += path;
  ends_.push_back(text_.size());
}

std::string_view PathList::operator[](Index item) const {
  const auto i = static_cast<std::size_t>(item);
  const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
  return std::string_view(text_).substr(begin, ends_[i] - begin);
}

fs::path picture_path(const PictureFiles& files, Index item) {
  const fs::path path(files.paths[item]);
  fs::path from_base = files.base / path;  // `path` itself where that is absolute
  std::error_code error;
  return fs::exists(from_base, error) || !fs::exists(path, error) ? from_base : path;
}

Picture read_listed_picture(const PictureFiles& files,
                            Index item,
                            Index channels,
                            const Detail& detail) {
  return read_picture_file(picture_path(files, item), channels, detail);
}

PictureFiles list_file_pictures(const fs::path& file) {
  const TextLines lines(file);
  PictureFiles files;
  files.base = file.parent_path();
  for (Index i = 0; i < lines.size(); ++i) {
    files.paths.add(lines.text(i));
  }
  if (files.paths.size() == 0) {
    throw partitioner::InputError(
        file.string(), 0, "this list of pictures is empty: one path a line was expected");
  }
  return files;
}

}  // namespace engine
