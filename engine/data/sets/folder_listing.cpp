#include "engine/data/sets/folder_listing.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <iterator>
#include <limits>
#include <span>
#include <system_error>

#include "partitioner/base/errors.h"
#include "partitioner/base/path_kinds.h"
#include "partitioner/base/regular_file.h"

namespace tessera::engine {

namespace {

namespace fs = std::filesystem;

constexpr int kMostLevels = 32;

bool is_hidden(const std::string& name) {
  return name.front() == '.';
}

std::string in_small_letters(std::string text) {
  for (char& letter : text) {
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return text;
}

// Calls `look` for all entries that are not hidden; returns why the folder cannot be listed.
std::error_code for_each_entry(const fs::path& folder,
                               const std::function<void(const fs::directory_entry&)>& look) {
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    if (!is_hidden(entries->path().filename().string())) {
      look(*entries);
    }
  }
  return error;
}

class Listing {
 public:
  Listing(const fs::path& folder, bool deeper, Index most)
      : folder_(folder), deeper_(deeper), most_(most) {
    look_into("", 0);
    std::sort(listing_.pictures.begin(), listing_.pictures.end());
    std::sort(listing_.deeper.begin(), listing_.deeper.end());
  }

  [[nodiscard]] FolderListing take() { return std::move(listing_); }

 private:
  // `below` is relative to the folder.
  void look_into(const fs::path& below, int level) {
    const std::size_t before = listing_.pictures.size();
    std::vector<fs::path> folders;
    const std::error_code error =
        for_each_entry(path_of(below), [&](const fs::directory_entry& entry) {
          look_at(entry, below / entry.path().filename(), folders);
        });
    if (error) {
      add_problem(below, DataFault::Unreadable, "cannot list this folder: " + error.message());
    }
    const std::size_t found = listing_.pictures.size() - before;
    if (level > 0 && found > 0) {
      listing_.deeper.push_back(below.string());
      listing_.deeper_pictures += static_cast<Index>(found);
    }
    for (const fs::path& each : folders) {
      if (level == kMostLevels) {
        add_problem(each, DataFault::LeftOut, "this folder is nested too deeply");
      } else {
        look_into(each, level + 1);
      }
    }
  }

  void look_at(const fs::directory_entry& entry,
               const fs::path& relative,
               std::vector<fs::path>& folders) {
    std::error_code error;
    const bool linked = entry.is_symlink(error);
    if (entry.is_directory(error)) {
      if (linked && deeper_) {
        add_problem(relative, DataFault::LeftOut, "a link to a folder, which is not followed");
      } else if (deeper_) {
        folders.push_back(relative);
      }
      return;
    }
    if (!is_picture_name(relative)) {
      ++listing_.left_out[ending_of(relative)];
      return;
    }
    if (entry.is_regular_file(error)) {
      add_picture(relative);
    } else if (linked && !entry.exists(error)) {
      add_problem(
          relative, DataFault::Missing, "this link does not lead to a picture: fix or remove it");
    } else {
      add_problem(relative,
                  DataFault::Unreadable,
                  fmt::format("this is {}, expected a picture", irregular_kind(entry.path())));
    }
  }

  void add_picture(const fs::path& relative) {
    if (std::ssize(listing_.pictures) == most_) {
      throw InputError(folder_.string(),
                       0,
                       fmt::format("more than {} pictures are in this folder and below it: give "
                                   "some of its folders instead",
                                   most_));
    }
    listing_.pictures.push_back(relative.string());
  }

  [[nodiscard]] fs::path path_of(const fs::path& relative) const {
    return relative.empty() ? folder_ : folder_ / relative;
  }

  void add_problem(const fs::path& relative, DataFault fault, const std::string& what) {
    listing_.problems.push_back({fault, path_of(relative).string(), what});
  }

  fs::path folder_;
  bool deeper_;
  Index most_;
  FolderListing listing_;
};

}  // namespace

FolderListing list_pictures(const fs::path& folder, Index most) {
  return Listing(folder, true, most).take();
}

FolderListing list_pictures_directly_in(const fs::path& folder) {
  return Listing(folder, false, std::numeric_limits<Index>::max()).take();
}

namespace {

// Made by file systems, network drives and archives.
constexpr std::array<std::string_view, 8> kSystemFolders{"lost+found",
                                                         "@eaDir",
                                                         "#recycle",
                                                         "#snapshot",
                                                         "$RECYCLE.BIN",
                                                         "System Volume Information",
                                                         "__MACOSX",
                                                         "RECYCLER"};

bool is_foreign(const fs::path& folder) {
  return std::find(kSystemFolders.begin(), kSystemFolders.end(), folder.filename().string()) !=
             kSystemFolders.end() ||
         (is_there(folder / "run.json") && is_there(folder / "metrics.jsonl"));
}

std::vector<std::string> folders_that(const fs::path& folder, bool are_foreign) {
  std::vector<std::string> names;
  const std::error_code error = for_each_entry(folder, [&](const fs::directory_entry& entry) {
    std::error_code unreadable;
    if (entry.is_directory(unreadable) && is_foreign(entry.path()) == are_foreign) {
      names.push_back(entry.path().filename().string());
    }
  });
  if (error) {
    throw InputError(
        folder.string(), 0, fmt::format("cannot list this folder: {}", error.message()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::vector<std::string> folders_in(const fs::path& folder) {
  return folders_that(folder, false);
}

std::vector<std::string> foreign_folders_in(const fs::path& folder) {
  return folders_that(folder, true);
}

std::vector<std::string> names_of_half(const std::vector<std::string>& names, bool training) {
  static constexpr std::array kTraining{"train", "training"};
  static constexpr std::array kTesting{"test", "testing", "val", "valid", "validation"};
  const std::span<const char* const> known =
      training ? std::span<const char* const>(kTraining) : std::span<const char* const>(kTesting);
  std::vector<std::string> found;
  for (const char* half : known) {
    std::copy_if(
        names.begin(), names.end(), std::back_inserter(found), [&](const std::string& name) {
          return in_small_letters(name) == half;
        });
  }
  return found;
}

HalfFolders half_folders(const fs::path& folder) {
  const std::vector<std::string> folders = folders_in(folder);
  const std::vector<std::string> training = names_of_half(folders, true);
  const std::vector<std::string> testing = names_of_half(folders, false);
  if (training.size() > 1) {
    throw InputError(folder.string(),
                     0,
                     fmt::format("{} and {} are both folders for training: remove or rename one",
                                 training[0],
                                 training[1]));
  }
  HalfFolders halves{training.empty() ? "" : training[0], testing.empty() ? "" : testing[0], {}};
  std::copy_if(
      folders.begin(),
      folders.end(),
      std::back_inserter(halves.unused),
      [&](const std::string& name) { return name != halves.training && name != halves.testing; });
  return halves;
}

std::optional<DataProblem> unused_beside(const HalfFolders& halves, const fs::path& folder) {
  if (halves.unused.empty()) {
    return std::nullopt;
  }
  const std::string used = halves.testing.empty() ? "" : " and " + halves.testing;
  return DataProblem{DataFault::LeftOut,
                     folder.string(),
                     fmt::format("only {}{} {} used, not {}",
                                 halves.training,
                                 used,
                                 used.empty() ? "is" : "are",
                                 fmt::join(halves.unused, ", "))};
}

std::string ending_of(const fs::path& name) {
  return in_small_letters(name.extension().string());
}

std::vector<fs::path> files_ending_in(const fs::path& folder, std::string_view ending) {
  std::vector<fs::path> files;
  const std::error_code error = for_each_entry(folder, [&](const fs::directory_entry& entry) {
    std::error_code unknown;
    if (ending_of(entry.path()) == ending && entry.is_regular_file(unknown)) {
      files.push_back(entry.path());
    }
  });
  if (error && error != std::errc::no_such_file_or_directory &&
      error != std::errc::not_a_directory) {
    throw InputError(folder.string(), 0, "cannot be listed: " + error.message());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string describe(const LeftOutFiles& files) {
  std::string text;
  for (const auto& [ending, count] : files) {
    text += fmt::format("{}{} {}file{}{}",
                        text.empty() ? "" : ", ",
                        count,
                        ending.empty() ? "" : ending + " ",
                        count == 1 ? "" : "s",
                        ending.empty() ? " without an ending" : "");
  }
  return text;
}

std::string conversion_of(const LeftOutFiles& files) {
  std::string text;
  for (const auto& [ending, count] : files) {
    if (is_other_picture_name("picture" + ending)) {
      text += fmt::format("{}convert {} files to JPEG, {}",
                          text.empty() ? ": " : "; ",
                          ending,
                          other_picture_converter(ending));
    }
  }
  return text;
}

void expect_labels_in(const fs::path& folder) {
  std::vector<fs::path> places = {folder};
  for (const std::string& name : names_of_half(folders_in(folder), true)) {
    places.push_back(folder / name);
  }
  for (const fs::path& place : places) {
    const std::vector<std::string> pictures = list_pictures_directly_in(place).pictures;
    if (!pictures.empty() && folders_in(place).empty()) {
      throw InputError(
          place.string(),
          0,
          fmt::format("nothing says what is on the {} picture{} here ({}{}): for a classifier, put "
                      "those of each class into a folder that is called as the class; for a "
                      "detector, VOC's XML or COCO's _annotations.coco.json is missing beside "
                      "them, or a data.yaml or Darknet .data file",
                      pictures.size(),
                      pictures.size() == 1 ? "" : "s",
                      pictures.front(),
                      pictures.size() == 1 ? "" : ", ..."));
    }
  }
}

}  // namespace tessera::engine
