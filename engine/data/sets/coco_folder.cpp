#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "engine/data/sets/box_sets.h"
#include "engine/data/sets/coco.h"
#include "engine/data/text/unicode_names.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/path_kinds.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kInstances = "instances_";

// "train2017" of instances_train2017.json.
std::string set_name(const fs::path& file) {
  std::string name = file.stem().string();
  return name.rfind(kInstances, 0) == 0 ? name.substr(kInstances.size()) : name;
}

// What the name of a file says of the half that it is of: the first of its words that does, and
// all that is left of the name without it.
struct NamedHalf {
  enum Half { Unknown, Training, Validation, Testing } half = Unknown;
  std::string rest;
};

NamedHalf half_named(const fs::path& file) {
  const std::string name = set_name(file);
  const auto is_letter = [](char letter) {
    return std::isalpha(static_cast<unsigned char>(letter)) != 0;
  };
  for (auto begin = name.begin(); begin != name.end();) {
    begin = std::find_if(begin, name.end(), is_letter);
    const auto end = std::find_if_not(begin, name.end(), is_letter);
    const std::string word(begin, end);
    const bool tests = !names_of_half({word}, false).empty();
    if (tests || !names_of_half({word}, true).empty() || word == "trainval") {
      const bool test = std::tolower(static_cast<unsigned char>(word.front())) == 't';
      return {!tests ? NamedHalf::Training
              : test ? NamedHalf::Testing
                     : NamedHalf::Validation,
              std::string(name.begin(), begin) + "*" + std::string(end, name.end())};
    }
    begin = end;
  }
  return {NamedHalf::Unknown, name};
}

// The files of both halves; without a second one, the first is divided.
struct CocoHalves {
  std::vector<fs::path> training;
  std::vector<fs::path> testing;
  std::vector<DataProblem> problems;
};

const fs::path& only_one(const std::vector<fs::path>& files, const fs::path& folder) {
  if (files.size() > 1) {
    throw InputError(folder.string(),
                     0,
                     fmt::format("{} and {} are both here: give the one that is meant as data set",
                                 files[0].filename().string(),
                                 files[1].filename().string()));
  }
  return files.front();
}

// By the names of files in one folder. Those of other things on the same pictures (captions) do not
// count beside instances_*. Files that name no half are parts of the half for training, where no
// other file is.
CocoHalves halves_of(std::vector<fs::path> files, const fs::path& folder) {
  const auto is_of_instances = [](const fs::path& file) {
    return file.filename().string().rfind(kInstances, 0) == 0;
  };
  if (std::any_of(files.begin(), files.end(), is_of_instances)) {
    std::erase_if(files, [&](const fs::path& file) { return !is_of_instances(file); });
  }
  std::map<NamedHalf::Half, std::vector<fs::path>> named;
  for (const fs::path& file : files) {
    named[half_named(file).half].push_back(file);
  }
  CocoHalves halves;
  for (const auto half : {NamedHalf::Validation, NamedHalf::Testing}) {
    if (halves.testing.empty() && !named[half].empty()) {
      halves.testing = {only_one(named[half], folder)};
    }
  }
  const std::vector<fs::path>& others = named[NamedHalf::Unknown];
  halves.training = others;
  if (!named[NamedHalf::Training].empty()) {
    halves.training = {only_one(named[NamedHalf::Training], folder)};
    for (const fs::path& file : others) {
      halves.problems.push_back(
          {DataFault::LeftOut,
           file.string(),
           "this file is left out: " + halves.training.front().filename().string() +
               " is for training"});
    }
  }
  return halves;
}

// A file that was given by itself, and the other half beside it.
CocoHalves halves_beside(const fs::path& file) {
  const NamedHalf mine = half_named(file);
  if (mine.half == NamedHalf::Validation || mine.half == NamedHalf::Testing) {
    return {{}, {file}, {}};
  }
  if (mine.half == NamedHalf::Training) {
    for (const auto half : {NamedHalf::Validation, NamedHalf::Testing}) {
      for (const fs::path& other : files_ending_in(file.parent_path(), ".json")) {
        if (const NamedHalf its = half_named(other); its.half == half && its.rest == mine.rest) {
          return {{file}, {other}, {}};
        }
      }
    }
  }
  return {{file}, {}, {}};
}

// The file beside pictures that says what is on them: _annotations.coco.json, or another one alone.
// None where there are folders, which may be of classes.
std::vector<fs::path> annotations_beside_pictures(const fs::path& folder) {
  const fs::path usual = folder / "_annotations.coco.json";
  if (is_file(usual)) {
    return {usual};
  }
  std::vector<fs::path> files = files_ending_in(folder, ".json");
  if (files.empty() || !folders_in(folder).empty() ||
      list_pictures_directly_in(folder).pictures.empty()) {
    return {};
  }
  return {only_one(files, folder)};
}

// The files of a data set's folder: in annotations, or beside the pictures, which may lie in a
// folder for each half. None where it is no such data set.
CocoHalves halves_in(const fs::path& folder) {
  const fs::path annotations = folder / "annotations";
  if (std::vector<fs::path> files = files_ending_in(annotations, ".json"); !files.empty()) {
    return halves_of(std::move(files), annotations);
  }
  if (std::vector<fs::path> files = annotations_beside_pictures(folder); !files.empty()) {
    return {std::move(files), {}, {}};
  }
  const std::vector<std::string> training = names_of_half(folders_in(folder), true);
  if (training.size() != 1) {
    return {};
  }
  CocoHalves halves{annotations_beside_pictures(folder / training[0]), {}, {}};
  if (halves.training.empty()) {
    return {};
  }
  const HalfFolders folders = half_folders(folder);
  if (!folders.testing.empty()) {
    halves.testing = annotations_beside_pictures(folder / folders.testing);
    if (halves.testing.empty()) {
      throw InputError((folder / folders.testing).string(),
                       0,
                       "there is no _annotations.coco.json here, as there is beside the pictures "
                       "for training: add it, or remove the folder");
    }
  }
  if (std::optional<DataProblem> unused = unused_beside(folders, folder)) {
    halves.problems.push_back(*std::move(unused));
  }
  return halves;
}

// Where the pictures of a file are, seen from the data set's folder.
fs::path picture_folder(const fs::path& base, const fs::path& file, const CocoSet& set) {
  const std::string name = set_name(file);
  std::vector<fs::path> candidates = {name, fs::path("images") / name, "images", "", "data"};
  const fs::path beside = file.parent_path();
  if ((beside / "").lexically_normal() == (base / "").lexically_normal()) {
    candidates.insert(candidates.begin(), "");
  } else if (beside.filename() != "annotations") {
    candidates.insert(candidates.begin(), beside.filename());
  }
  for (const fs::path& candidate : candidates) {
    for (std::size_t i = 0; i < std::min<std::size_t>(set.images.size(), 10); ++i) {
      if (!set.images[i].file.empty() && is_there(base / candidate / set.images[i].file)) {
        return candidate;
      }
    }
  }
  return candidates.front();
}

// Places in the lists of a set.
struct OnImage {
  std::vector<std::size_t> objects;
  std::vector<std::size_t> faults;
};

std::vector<OnImage> by_image(const CocoSet& set) {
  std::vector<OnImage> images(set.images.size());
  for (std::size_t i = 0; i < set.objects.size(); ++i) {
    images[static_cast<std::size_t>(set.objects[i].image)].objects.push_back(i);
  }
  for (std::size_t i = 0; i < set.faults.size(); ++i) {
    if (const std::optional<Index>& image = set.faults[i].image) {
      images[static_cast<std::size_t>(*image)].faults.push_back(i);
    }
  }
  return images;
}

ReadBoxes boxes_of_coco(const CocoSet& set,
                        const CocoImage& image,
                        const OnImage& on_image,
                        const fs::path& file) {
  ReadBoxes read;
  for (const std::size_t i : on_image.faults) {
    read.problems.push_back({DataFault::BadLabel, file.string(), set.faults[i].what});
  }
  const bool has_size = image.width > 0 && image.height > 0;
  if (image.file.empty() || !has_size) {
    if (read.problems.empty()) {
      read.problems.push_back({DataFault::BadLabel,
                               file.string(),
                               fmt::format("image {} has no {}",
                                           image.id,
                                           has_size ? "file_name: add the picture's file"
                                                    : "width and height: add its size in pixels")});
    }
    return read;
  }
  read.width = image.width;
  read.height = image.height;
  DifferentBoxes boxes(read.boxes);
  for (const std::size_t i : on_image.objects) {
    const TrueBox& object = set.objects[i];
    const std::string prefix = fmt::format(
        "annotations[{}], on {}: ", set.annotations[i], printable_start(image.file, 100));
    if (object.box.width == 0 || object.box.height == 0) {
      if (!object.crowd) {
        read.problems.push_back(
            {DataFault::LeftOut, file.string(), prefix + "a box without any area is left out"});
      }
      continue;
    }
    const Box box{static_cast<int>(object.label),
                  static_cast<float>((object.box.left + object.box.width / 2) / image.width),
                  static_cast<float>((object.box.top + object.box.height / 2) / image.height),
                  static_cast<float>(object.box.width / image.width),
                  static_cast<float>(object.box.height / image.height),
                  object.crowd};
    add_object(box, file.string(), prefix, boxes, read);
  }
  return read;
}

void add_coco(const fs::path& file, PictureFiles& files) {
  CocoSet set = read_coco_set(file);
  if (set.categories.empty()) {
    throw InputError(file.string(), 0, "categories: none: there are no classes");
  }
  std::vector<std::string> names;
  for (const CocoCategory& category : set.categories) {
    names.push_back(composed(category.name));
  }
  if (files.class_names.empty()) {
    files.class_names = names;
  } else if (names != files.class_names) {
    throw InputError(file.string(),
                     0,
                     "categories: others than those of the files beside this one, or in another "
                     "order: give the file that is meant as data set");
  }
  const fs::path folder = picture_folder(files.base, file, set);
  const std::vector<OnImage> images = by_image(set);
  for (const CocoFault& fault : set.faults) {
    if (!fault.image) {
      files.problems.push_back({DataFault::BadLabel, file.string(), fault.what});
    }
  }
  std::map<std::string_view, Index> ids;
  SharedNames shared;
  for (std::size_t i = 0; i < set.images.size(); ++i) {
    const CocoImage& image = set.images[i];
    if (const auto [first, is_new] = ids.emplace(image.file, image.id);
        !is_new && !image.file.empty()) {
      shared.add(fmt::format("{} and {} are {}", first->second, image.id, image.file));
    }
    add_picture_with_boxes(
        (folder / image.file).string(), 0, boxes_of_coco(set, image, images[i], file), files);
  }
  shared.add_problem(
      file, "images have the picture of another, each with objects of its own", files);
}

}  // namespace

bool is_coco_folder(const fs::path& folder) {
  const CocoHalves halves = halves_in(folder);
  return !halves.training.empty() || !halves.testing.empty();
}

PictureFiles open_coco(const fs::path& path, bool training) {
  const bool given = is_file(path);
  CocoHalves halves = given ? halves_beside(path) : halves_in(path);
  const bool divided = halves.testing.empty();
  const std::vector<fs::path>& half = training || divided ? halves.training : halves.testing;
  if (half.empty()) {
    throw InputError(path.string(),
                     0,
                     "there are pictures for testing here, and none for training: expected "
                     "instances_train*.json");
  }
  PictureFiles files;
  files.base = path;
  if (given) {
    files.base = path.parent_path();
    if (files.base.filename() == "annotations") {
      files.base = files.base.parent_path();
    }
  }
  files.boxes.emplace();
  files.problems = std::move(halves.problems);
  for (const fs::path& file : half) {
    add_coco(file, files);
  }
  fit_to_pictures(files);
  if (divided) {
    files = tenth_or_others(files, !training);
  }
  add_missing_pictures(half.front(), training, files);
  return files;
}

}  // namespace tessera::engine
