#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <set>
#include <system_error>

#include "engine/data/sets/folder_listing.h"
#include "engine/data/sets/picture_files.h"
#include "engine/data/text/unicode_names.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

namespace fs = std::filesystem;

constexpr Index kTestEvery = 10;

// Empty where pictures of both halves are in the data set's folder itself.
HalfFolders find_halves(const fs::path& folder) {
  const std::vector<std::string> folders = folders_in(folder);
  const std::vector<std::string> training = names_of_half(folders, true);
  const std::vector<std::string> testing = names_of_half(folders, false);
  // A class may be called train, too: then pictures lie in it and other classes beside it.
  const bool is_class = !training.empty() && folders_in(folder / training[0]).empty() &&
                        training.size() + testing.size() < folders.size();
  if (training.empty() && !testing.empty() && testing.size() == folders.size()) {
    throw InputError(
        folder.string(), 0, fmt::format("this folder has {} but no train: add it", testing[0]));
  }
  return training.empty() || is_class ? HalfFolders{} : half_folders(folder);
}

void add_left_out(const FolderListing& listing, PictureFiles& files) {
  for (const auto& [ending, count] : listing.left_out) {
    files.left_out[ending] += count;
  }
}

// `folder` is relative to files.base. Returns what is left out.
LeftOutFiles add_class(const fs::path& folder, int label, PictureFiles& files) {
  const FolderListing listing = list_pictures(files.base / folder);
  for (const std::string& picture : listing.pictures) {
    files.paths.add((folder / picture).string());
    files.labels.push_back(label);
  }
  files.problems.insert(files.problems.end(), listing.problems.begin(), listing.problems.end());
  add_left_out(listing, files);
  if (listing.deeper_pictures > 0) {
    files.problems.push_back(
        {DataFault::DeeperFolder,
         (files.base / folder).string(),
         fmt::format("{} picture{} in deeper folders ({}{}) count for this class",
                     listing.deeper_pictures,
                     listing.deeper_pictures == 1 ? "" : "s",
                     listing.deeper[0],
                     listing.deeper.size() > 1
                         ? fmt::format(" and {} more", listing.deeper.size() - 1)
                         : "")});
  }
  return listing.left_out;
}

void add_loose_pictures(const fs::path& folder, PictureFiles& files) {
  const FolderListing listing = list_pictures_directly_in(folder);
  add_left_out(listing, files);
  if (!listing.pictures.empty()) {
    files.problems.push_back({DataFault::LeftOut,
                              folder.string(),
                              fmt::format("{} pictures are in no class folder: {}{}",
                                          listing.pictures.size(),
                                          listing.pictures[0],
                                          listing.pictures.size() > 1 ? ", ..." : "")});
  }
}

// Adds the pictures of every class folder in `half`, which is relative to files.base. Only training
// folders must have pictures.
void add_half(const fs::path& half, bool must_be_full, PictureFiles& files) {
  const fs::path folder = half.empty() ? files.base : files.base / half;
  add_loose_pictures(folder, files);
  for (const std::string& name : foreign_folders_in(folder)) {
    files.problems.push_back({DataFault::LeftOut,
                              (folder / name).string(),
                              "this folder is left out: it is a system's or a training run's"});
  }
  for (const std::string& name : folders_in(folder)) {
    const std::string class_name = composed(name);
    const auto known =
        std::lower_bound(files.class_names.begin(), files.class_names.end(), class_name);
    if (known == files.class_names.end() || *known != class_name) {
      files.problems.push_back(
          {DataFault::UnknownClass,
           (folder / name).string(),
           "there is no such class among the folders for training: add or rename it"});
      continue;
    }
    const Index before = files.paths.size();
    const LeftOutFiles others =
        add_class(half / name, static_cast<int>(known - files.class_names.begin()), files);
    if (files.paths.size() == before && must_be_full) {
      const std::string conversion = conversion_of(others);
      files.problems.push_back(
          {DataFault::EmptyClass,
           (folder / name).string(),
           fmt::format("this class folder contains no pictures{}{}",
                       conversion.empty() ? "" : " that can be read, but " + describe(others),
                       conversion.empty() ? ": add some, or remove the folder" : conversion)});
    }
  }
}

bool has_error(const std::vector<DataProblem>& problems) {
  return std::any_of(problems.begin(), problems.end(), [](const DataProblem& each) {
    return is_error(each.fault);
  });
}

// Adds that there is nothing, unless a problem says why.
void add_emptiness(const HalfFolders& halves, bool training, PictureFiles& files) {
  if (files.paths.size() > 0 || has_error(files.problems)) {
    return;
  }
  const bool divided = halves.testing.empty();
  const std::string& half = training || divided ? halves.training : halves.testing;
  files.problems.push_back(
      {DataFault::Unusable,
       (half.empty() ? files.base : files.base / half).string(),
       fmt::format(
           "no picture for {} was found here{}: add some",
           training ? "training" : "testing",
           divided && !training ? " (a tenth of each class, of at least two pictures)" : "")});
}

// Every tenth picture of each class and the last one of a class that has fewer, but not its only
// one; or all others.
PictureFiles keep_part(const PictureFiles& all, bool training) {
  std::vector<Index> sizes(all.class_names.size());
  for (const int label : all.labels) {
    ++sizes[static_cast<std::size_t>(label)];
  }
  std::vector<Index> seen(sizes.size());
  std::vector<Index> others;
  for (Index i = 0; i < all.paths.size(); ++i) {
    const auto label = static_cast<std::size_t>(all.labels[static_cast<std::size_t>(i)]);
    const Index place = seen[label]++;
    const bool few = sizes[label] > 1 && sizes[label] < kTestEvery;
    const bool tests = few ? place == sizes[label] - 1 : place % kTestEvery == kTestEvery - 1;
    if (tests == training) {
      others.push_back(i);
    }
  }
  return without_items(all, others);
}

}  // namespace

namespace {

// In the order of classes, each once.
std::vector<std::string> class_names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const std::string& name : folders_in(folder)) {
    names.insert(composed(name));
  }
  return {names.begin(), names.end()};
}

}  // namespace

bool has_class_folders(const fs::path& folder) {
  return !folders_in(folder).empty();
}

PictureFiles open_class_folders(const fs::path& folder, bool training, bool is_part) {
  const HalfFolders halves = find_halves(folder);
  const bool divided = halves.testing.empty();
  PictureFiles files;
  files.base = folder;
  files.class_names = class_names_in(folder / halves.training);
  if (files.class_names.empty() && !is_part) {
    expect_labels_in(folder);
    const LeftOutFiles others = list_pictures_directly_in(folder / halves.training).left_out;
    throw InputError((folder / halves.training).string(),
                     0,
                     fmt::format("there are no pictures here{}{}; expected a folder of them for "
                                 "each class",
                                 others.empty() ? "" : " (but " + describe(others) + ")",
                                 conversion_of(others)));
  }
  if (is_part && !divided) {
    const std::vector<std::string> tested = class_names_in(folder / halves.testing);
    std::vector<std::string> all;
    std::set_union(files.class_names.begin(),
                   files.class_names.end(),
                   tested.begin(),
                   tested.end(),
                   std::back_inserter(all));
    files.class_names = std::move(all);
  }
  add_half(training || divided ? halves.training : halves.testing, training || divided, files);
  if (std::optional<DataProblem> unused = unused_beside(halves, folder)) {
    files.problems.push_back(*std::move(unused));
  }
  if (divided) {
    files = keep_part(files, training);
    files.divided = true;
  }
  add_emptiness(halves, training, files);
  return files;
}

PictureFiles list_folder_pictures(const fs::path& folder, Index most) {
  FolderListing listing = list_pictures(folder, most);
  PictureFiles files;
  files.base = folder;
  for (const std::string& name : listing.pictures) {
    files.paths.add(name);
  }
  files.problems = std::move(listing.problems);
  files.left_out = std::move(listing.left_out);
  if (files.paths.size() == 0 && !has_error(files.problems)) {
    const std::string conversion = conversion_of(files.left_out);
    throw InputError(
        folder.string(),
        0,
        fmt::format("there are no pictures in this folder or below it{}{}",
                    files.left_out.empty() ? "" : " (but " + describe(files.left_out) + ")",
                    conversion.empty() ? ": give one that has some" : conversion));
  }
  return files;
}

}  // namespace tessera::engine
