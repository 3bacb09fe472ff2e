// Data sets of picture files, decoded when they are asked for: what a Darknet .data file lists, and
// a folder per class.

#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/picture.h"

namespace engine {

// Many paths in one piece of memory: a data set has up to millions.
class PathList {
 public:
  void add(std::string_view path);
  [[nodiscard]] Index size() const { return static_cast<Index>(ends_.size()); }
  [[nodiscard]] std::string_view operator[](Index item) const;

 private:
  std::string text_;
  std::vector<std::size_t> ends_;
};

struct PictureFiles {
  PathList paths;
  std::vector<int> labels;  // class indices, one per path; empty where only pictures were asked for
  std::vector<std::string> class_names;
  std::filesystem::path
      base;  // a relative path is looked for from here first, then from the current folder
};

// Where the file is.
[[nodiscard]] std::filesystem::path picture_path(const PictureFiles& files, Index item);

[[nodiscard]] Picture read_listed_picture(const PictureFiles& files,
                                          Index item,
                                          Index channels,
                                          const Detail& detail = {});

// Reads a Darknet .data file: lines `key = value` with the keys classes, train, valid (files of one
// path a line), labels (what to look for in paths) and names (what to call the classes; also looked
// for where there is no labels). A picture's class is the label that occurs in its path; of several
// the longest. A path with none, or with two of the same length, is an InputError.
[[nodiscard]] PictureFiles open_darknet_data(const std::filesystem::path& file, bool training);

// Whether `folder` holds a folder train, or any other folder at all.
[[nodiscard]] bool has_class_folders(const std::filesystem::path& folder);

// Reads train/CLASS/*.jpg and test/CLASS/*.jpg (also val, valid), or CLASS/*.jpg only; then every
// tenth picture is for testing, by position in the list sorted by class and name. Classes are the
// folders for training, sorted.
[[nodiscard]] PictureFiles open_class_folders(const std::filesystem::path& folder, bool training);

// Without labels: the pictures of a folder, sorted by name, or those that a text file lists.
[[nodiscard]] PictureFiles list_folder_pictures(const std::filesystem::path& folder);
[[nodiscard]] PictureFiles list_file_pictures(const std::filesystem::path& file);

}  // namespace engine
