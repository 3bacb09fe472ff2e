// What lies in the folder of a class, and below it.

#pragma once

#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "engine/data/data_problem.h"
#include "engine/data/picture.h"

namespace tessera::engine {

// Files that are not looked at, by the ending of their names in small letters (".heic"; empty:
// without one).
using LeftOutFiles = std::map<std::string, Index>;

struct FolderListing {
  std::vector<std::string> pictures;  // relative to the folder, sorted
  std::vector<std::string> deeper;    // folders in it that hold some of them, sorted
  Index deeper_pictures = 0;
  LeftOutFiles left_out;
  std::vector<DataProblem> problems;
};

// The pictures in `folder` and in all folders below it, 32 levels deep. Names that begin with a dot
// are hidden and not looked at; links to folders are not followed, and a link to nothing is a
// problem. Throws InputError where there are more than `most` pictures.
[[nodiscard]] FolderListing list_pictures(const std::filesystem::path& folder,
                                          Index most = std::numeric_limits<Index>::max());

// The same without the folders below it.
[[nodiscard]] FolderListing list_pictures_directly_in(const std::filesystem::path& folder);

// Names of folders in `folder`, or of links to some, sorted. Hidden ones are left out, and those of
// foreign_folders_in(). Throws InputError where it cannot be listed.
[[nodiscard]] std::vector<std::string> folders_in(const std::filesystem::path& folder);

// Names of folders in it that people do not make for pictures: a system's own, such as "lost+found"
// of a disk and "@eaDir" of a network drive, and folders of training runs.
[[nodiscard]] std::vector<std::string> foreign_folders_in(const std::filesystem::path& folder);

// "2 .heic files and 1 file without an ending"; empty where there are none.
[[nodiscard]] std::string describe(const LeftOutFiles& files);

}  // namespace tessera::engine
