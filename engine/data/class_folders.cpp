#include <algorithm>
#include <fmt/format.h>
#include <system_error>

#include "engine/data/picture_files.h"
#include "partitioner/errors.h"

namespace engine {

namespace {

namespace fs = std::filesystem;
using partitioner::InputError;

constexpr Index kTestEvery = 10;

// Whether it is a file, or a link to one; throws InputError for a link to nothing.
bool is_picture_file(const fs::directory_entry& entry) {
  std::error_code error;
  if (!entry.exists(error) && entry.is_symlink(error)) {
    throw InputError(entry.path().string(), 0, "this link leads to no picture: mend or remove it");
  }
  return entry.is_regular_file(error);
}

// Names in `folder` that are folders, or pictures; sorted, hidden ones left out.
std::vector<std::string> names_in(const fs::path& folder, bool folders) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    const fs::path name = entries->path().filename();
    if (name.string().front() == '.') {
      continue;
    }
    std::error_code unreadable;
    const bool wanted = folders ? entries->is_directory(unreadable)
                                : is_picture_name(name) && is_picture_file(*entries);
    if (wanted) {
      names.push_back(name.string());
    }
  }
  if (error) {
    throw InputError(
        folder.string(), 0, fmt::format("cannot list this folder: {}", error.message()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The folder of one half, by any of its names; empty if there is none.
fs::path find_half(const fs::path& folder, const std::vector<const char*>& names) {
  for (const char* name : names) {
    std::error_code error;
    if (fs::is_directory(folder / name, error)) {
      return folder / name;
    }
  }
  return {};
}

// Adds the pictures of every class folder in `half`. Only training folders must have pictures.
void add_half(const fs::path& half, bool must_be_full, PictureFiles& files) {
  for (const std::string& name : names_in(half, true)) {
    const auto known = std::lower_bound(files.class_names.begin(), files.class_names.end(), name);
    if (known == files.class_names.end() || *known != name) {
      throw InputError((half / name).string(),
                       0,
                       "there is no such class among the folders for training: add or rename it");
    }
    const std::vector<std::string> pictures = names_in(half / name, false);
    if (pictures.empty() && must_be_full) {
      throw InputError(
          (half / name).string(),
          0,
          "this class folder holds no .jpg, .jpeg or .png file: add pictures or remove the folder");
    }
    for (const std::string& picture : pictures) {
      files.paths.add((half / name / picture).string());
      files.labels.push_back(static_cast<int>(known - files.class_names.begin()));
    }
  }
}

// Every tenth picture, or all others.
PictureFiles keep_part(const PictureFiles& all, bool training) {
  PictureFiles part;
  part.class_names = all.class_names;
  for (Index i = 0; i < all.paths.size(); ++i) {
    if ((i % kTestEvery != kTestEvery - 1) == training) {
      part.paths.add(all.paths[i]);
      part.labels.push_back(all.labels[static_cast<std::size_t>(i)]);
    }
  }
  return part;
}

}  // namespace

bool has_class_folders(const fs::path& folder) {
  return !names_in(folder, true).empty();
}

PictureFiles open_class_folders(const fs::path& folder, bool training) {
  const fs::path train = find_half(folder, {"train"});
  const fs::path test = find_half(folder, {"test", "val", "valid"});
  if (train.empty() && !test.empty()) {
    throw InputError(
        folder.string(),
        0,
        fmt::format("this folder has {} but no train: add it", test.filename().string()));
  }
  const fs::path root = train.empty() ? folder : train;
  PictureFiles files;
  files.class_names = names_in(root, true);
  if (training || test.empty()) {
    add_half(root, true, files);
  } else {
    add_half(test, false, files);
  }
  if (test.empty()) {
    files = keep_part(files, training);
  }
  if (files.paths.size() == 0) {
    throw InputError(
        (!training && !test.empty() ? test : root).string(),
        0,
        fmt::format("no picture for {} was found here{}: add some",
                    training ? "training" : "testing",
                    test.empty() && !training ? " (every tenth of at least ten)" : ""));
  }
  return files;
}

PictureFiles list_folder_pictures(const fs::path& folder) {
  PictureFiles files;
  for (const std::string& name : names_in(folder, false)) {
    files.paths.add((folder / name).string());
  }
  if (files.paths.size() == 0) {
    throw InputError(
        folder.string(), 0, "this folder holds no .jpg, .jpeg or .png file: name one that does");
  }
  return files;
}

}  // namespace engine
