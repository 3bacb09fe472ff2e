#include "engine/data/sets/picture_files.h"

#include <algorithm>
#include <fmt/format.h>
#include <system_error>

#include "engine/data/text/read_file.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/path_kinds.h"

namespace tessera::engine {

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
  fs::path from_base = files.base / path;          // `path` itself where that is absolute
  if (files.list.empty() || path.is_absolute()) {  // found there when the folder was listed
    return from_base;
  }
  return is_there(from_base) || !is_there(path) ? from_base : path;
}

Index memory_of(const PictureFiles& files) {
  return files.paths.bytes() +
         static_cast<Index>((files.labels.capacity() + files.line_numbers.capacity()) *
                            sizeof(int)) +
         (files.boxes ? files.boxes->bytes() : 0);
}

std::string place_of(const PictureFiles& files, Index item) {
  const int line = files.list.empty() ? 0 : files.line_numbers[static_cast<std::size_t>(item)];
  return line == 0 ? picture_path(files, item).string()
                   : fmt::format("{}:{}", files.list.string(), line);
}

namespace {

// The length of the longest start that all absolute paths share, up to and with a slash.
std::size_t common_folders(const PictureFiles& files) {
  std::string_view shared;
  bool first = true;
  for (Index i = 0; i < files.paths.size(); ++i) {
    const std::string_view path = files.paths[i];
    if (path.front() != '/') {
      continue;
    }
    if (first) {
      shared = path.substr(0, path.rfind('/') + 1);
      first = false;
    }
    const auto differ = std::mismatch(shared.begin(), shared.end(), path.begin(), path.end()).first;
    shared = shared.substr(0, static_cast<std::size_t>(differ - shared.begin()));
    shared = shared.substr(0, shared.rfind('/') + 1);
  }
  return shared.size();
}

}  // namespace

CommonNames::CommonNames(const PictureFiles& files)
    : files_(&files), shared_(common_folders(files)) {
  std::error_code error;
  base_ = fs::absolute(files.base.empty() ? "." : files.base, error).lexically_normal().string();
  base_ += base_.empty() || base_.back() == '/' ? "" : "/";
}

std::string_view CommonNames::operator[](Index item) const {
  const std::string_view path = files_->paths[item];
  if (files_->list.empty() && files_->base.empty()) {  // named one by one
    return path.substr(path.rfind('/') + 1);
  }
  if (path.front() != '/') {
    return path;
  }
  const bool below_base = !base_.empty() && path.substr(0, base_.size()) == base_;
  return path.substr(below_base ? base_.size() : shared_);
}

PictureFiles without_items(const PictureFiles& files, const std::vector<Index>& items) {
  PictureFiles rest;
  rest.class_names = files.class_names;
  rest.base = files.base;
  rest.list = files.list;
  rest.divided = files.divided;
  rest.problems = files.problems;
  rest.left_out = files.left_out;
  if (files.boxes) {
    rest.boxes.emplace();
  }
  auto next = items.begin();
  for (Index i = 0; i < files.paths.size(); ++i) {
    if (next != items.end() && *next == i) {
      ++next;
      continue;
    }
    rest.paths.add(files.paths[i]);
    if (!files.labels.empty()) {
      rest.labels.push_back(files.labels[static_cast<std::size_t>(i)]);
    }
    if (files.boxes) {
      rest.boxes->add((*files.boxes)[i]);
    }
    if (!files.line_numbers.empty()) {
      rest.line_numbers.push_back(files.line_numbers[static_cast<std::size_t>(i)]);
    }
  }
  return rest;
}

void add_files(const PictureFiles& more, PictureFiles& files) {
  for (Index i = 0; i < more.paths.size(); ++i) {
    files.paths.add(more.paths[i]);
    if (files.boxes) {
      files.boxes->add((*more.boxes)[i]);
    }
  }
  files.labels.insert(files.labels.end(), more.labels.begin(), more.labels.end());
  if (!files.list.empty()) {
    files.line_numbers.resize(static_cast<std::size_t>(files.paths.size()));
  }
}

PictureFiles list_file_pictures(const fs::path& file) {
  const TextLines lines(file, "a text file with one picture path per line");
  PictureFiles files;
  files.base = file.parent_path();
  files.list = file;
  for (Index i = 0; i < lines.size(); ++i) {
    files.paths.add(lines.text(i));
    files.line_numbers.push_back(lines.number(i));
  }
  if (files.paths.size() == 0) {
    throw InputError(
        file.string(), 0, "this list of pictures is empty: expected one path per line");
  }
  return files;
}

}  // namespace tessera::engine
