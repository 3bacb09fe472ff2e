// Data sets of picture files, decoded when they are asked for: what a Darknet .data file lists, and
// a folder per class.
//
// What is wrong with single pictures and classes is kept with the list, so that all of it can be
// listed at once; what leaves nothing to list is an InputError.

#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/pictures/picture.h"
#include "engine/data/sets/box_lists.h"
#include "engine/data/sets/data_problem.h"
#include "engine/data/sets/folder_listing.h"

namespace tessera::engine {

// Many paths in one piece of memory: a data set has up to millions.
class PathList {
 public:
  void add(std::string_view path);
  [[nodiscard]] Index size() const { return static_cast<Index>(ends_.size()); }
  [[nodiscard]] std::string_view operator[](Index item) const;
  [[nodiscard]] Index bytes() const {
    return static_cast<Index>(text_.capacity() + ends_.capacity() * sizeof(std::size_t));
  }

 private:
  std::string text_;
  std::vector<std::size_t> ends_;
};

// How large a picture is, as a file of its boxes says.
struct StatedSize {
  Index item = 0;
  double width = 0;
  double height = 0;
};

struct PictureFiles {
  PathList paths;
  std::vector<int> labels;  // class indices, one per path; empty where pictures have no class
  // One list per path, ignored objects last; nothing: pictures have no boxes.
  std::optional<BoxLists> boxes;
  std::vector<StatedSize> stated_sizes;  // until fit_to_pictures(); of pictures with objects
  std::vector<std::string> class_names;
  std::filesystem::path
      base;  // a relative path is looked for from here first, then from the current folder
  std::filesystem::path list;     // the text file that lists them; empty: there is none
  std::vector<int> line_numbers;  // in that file, one per path; 0: it is not from there
  bool divided = false;  // the list is a part of one that the other half was taken from, too
  std::vector<DataProblem> problems;
  LeftOutFiles left_out;
};

// Where a message should point: "d.list:401", else the path of the file.
[[nodiscard]] std::string place_of(const PictureFiles& files, Index item);

// What to call pictures whose list was made on another machine as well: their paths from the data
// set's folder, or what is left of them beside the folders that all of them have in common.
class CommonNames {
 public:
  // `files` must outlive it.
  explicit CommonNames(const PictureFiles& files);
  [[nodiscard]] std::string_view operator[](Index item) const;

 private:
  const PictureFiles* files_;
  std::string base_;        // ends in a slash
  std::size_t shared_ = 0;  // bytes at the beginning of all absolute paths
};

// The same without some items, given in rising order.
[[nodiscard]] PictureFiles without_items(const PictureFiles& files,
                                         const std::vector<Index>& items);

// Adds those of `more` behind the others; their paths are absolute.
void add_files(const PictureFiles& more, PictureFiles& files);

// What the list takes.
[[nodiscard]] Index memory_of(const PictureFiles& files);

// Where the file is.
[[nodiscard]] std::filesystem::path picture_path(const PictureFiles& files, Index item);

// Reads a Darknet .data file: lines `key = value` with the keys classes, train, valid (files of one
// path per line), labels (what to look for in paths) and names (what to call the classes; also
// looked for where there is no labels). A picture's class is that of the label in its path
// (PathLabels); where that is none or more than one, it is a problem and not in the list.
[[nodiscard]] PictureFiles open_darknet_data(const std::filesystem::path& file, bool training);

// Whether `folder` holds a folder train, or any other folder at all.
[[nodiscard]] bool has_class_folders(const std::filesystem::path& folder);

// Reads train/CLASS/*.jpg and test/CLASS/*.jpg (by any of their names), or CLASS/*.jpg only; then
// every tenth picture is for testing, by position in the list sorted by class and name. Classes are
// the folders for training, sorted; of a part of a data set, of which other devices have the rest,
// those for testing, too. Pictures in folders below that of a class belong to it.
[[nodiscard]] PictureFiles open_class_folders(const std::filesystem::path& folder,
                                              bool training,
                                              bool is_part = false);

// Without labels: the pictures of a folder and of those below it, sorted by path, or those that a
// text file lists. A folder has `most` at most, and at least one, or an error among its problems.
inline constexpr Index kMostFolderPictures = 1000000;
[[nodiscard]] PictureFiles list_folder_pictures(const std::filesystem::path& folder,
                                                Index most = kMostFolderPictures);
[[nodiscard]] PictureFiles list_file_pictures(const std::filesystem::path& file);

}  // namespace tessera::engine
