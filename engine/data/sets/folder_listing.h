// What lies in the folder of a class, and below it.

#pragma once

#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/pictures/picture.h"
#include "engine/data/sets/data_problem.h"

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

// The names among these that say that half of a data set is there, in any letter case, the one to
// use first: train, training; test, testing, val, valid, validation.
[[nodiscard]] std::vector<std::string> names_of_half(const std::vector<std::string>& names,
                                                     bool training);

// Folders in a data set's that hold half of it each; empty: there is none.
struct HalfFolders {
  std::string training;
  std::string testing;
  std::vector<std::string> unused;  // the others
};

// By names_of_half. Throws InputError where two are for training.
[[nodiscard]] HalfFolders half_folders(const std::filesystem::path& folder);

// That some folders beside the halves are left out, if there are any.
[[nodiscard]] std::optional<DataProblem> unused_beside(const HalfFolders& halves,
                                                       const std::filesystem::path& folder);

// The ending of a file's name in small letters: ".jpg".
[[nodiscard]] std::string ending_of(const std::filesystem::path& name);

// Files directly in `folder` whose names end so, in any letter case, sorted; hidden ones are left
// out. None where there is no such folder; throws InputError where it cannot be listed.
[[nodiscard]] std::vector<std::filesystem::path> files_ending_in(
    const std::filesystem::path& folder, std::string_view ending);

// "2 .heic files and 1 file without an ending"; empty where there are none.
[[nodiscard]] std::string describe(const LeftOutFiles& files);

// How pictures in other formats among them become readable, as the end of a message: ": convert
// .heic files to JPEG, ..."; empty where there are none.
[[nodiscard]] std::string conversion_of(const LeftOutFiles& files);

// Throws InputError where pictures lie straight in `folder`, or in the folder for training in it,
// and no folders beside them: nothing says what is on them.
void expect_labels_in(const std::filesystem::path& folder);

}  // namespace tessera::engine
