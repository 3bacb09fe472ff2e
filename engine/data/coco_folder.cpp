#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <system_error>

#include "engine/data/box_sets.h"
#include "engine/data/coco.h"
#include "engine/data/unicode_names.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kInstances = "instances_";

std::vector<fs::path> json_files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder, error);
       !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    if (entry->path().extension() == ".json") {
      files.push_back(entry->path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

// "train2017" of instances_train2017.json.
std::string set_name(const fs::path& file) {
  std::string name = file.stem().string();
  return name.rfind(kInstances, 0) == 0 ? name.substr(kInstances.size()) : name;
}

bool begins_with(const std::string& text, std::string_view start) {
  return text.rfind(start, 0) == 0;
}

// The files of both halves; without a second one, the first is divided.
struct CocoHalves {
  std::optional<fs::path> training;
  std::optional<fs::path> testing;
};

const fs::path* one_of(const std::vector<fs::path>& files, const fs::path& folder) {
  if (files.size() > 1) {
    throw InputError(folder.string(),
                     0,
                     fmt::format("{} and {} are both here: give the one that is meant as data set",
                                 files[0].filename().string(),
                                 files[1].filename().string()));
  }
  return files.empty() ? nullptr : &files.front();
}

CocoHalves halves_in(const fs::path& folder) {
  const std::vector<fs::path> all = json_files_in(folder);
  std::vector<fs::path> training;
  std::vector<fs::path> testing;
  std::vector<fs::path> validation;
  for (const fs::path& file : all) {
    const bool named = begins_with(file.stem().string(), kInstances);
    const std::string set = set_name(file);
    if (named && begins_with(set, "train")) {
      training.push_back(file);
    } else if (named && begins_with(set, "val")) {
      validation.push_back(file);
    } else if (named && begins_with(set, "test")) {
      testing.push_back(file);
    }
  }
  CocoHalves halves;
  if (const fs::path* file = one_of(training, folder)) {
    halves.training = *file;
  }
  if (const fs::path* file = one_of(validation.empty() ? testing : validation, folder)) {
    halves.testing = *file;
  }
  if (!halves.training && !halves.testing) {
    halves.training = *one_of(all, folder);
  }
  return halves;
}

// A file that was given by itself, and the other half beside it.
CocoHalves halves_beside(const fs::path& file) {
  const std::string set = set_name(file);
  if (begins_with(set, "train")) {
    for (const char* other : {"val", "test"}) {
      std::error_code error;
      const fs::path beside =
          file.parent_path() / fmt::format("{}{}{}.json", kInstances, other, set.substr(5));
      if (fs::is_regular_file(beside, error)) {
        return {file, beside};
      }
    }
    return {file, std::nullopt};
  }
  return begins_with(set, "val") || begins_with(set, "test") ? CocoHalves{std::nullopt, file}
                                                             : CocoHalves{file, std::nullopt};
}

// Where the pictures of a file are, seen from the data set's folder.
fs::path picture_folder(const fs::path& base, const fs::path& file, const CocoSet& set) {
  const std::string name = set_name(file);
  const std::vector<fs::path> candidates = {name, fs::path("images") / name, "images", ""};
  for (const fs::path& candidate : candidates) {
    for (std::size_t i = 0; i < std::min<std::size_t>(set.images.size(), 10); ++i) {
      std::error_code error;
      if (!set.images[i].file.empty() && fs::exists(base / candidate / set.images[i].file, error)) {
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
    add_object(box, file.string(), prefix, read);
  }
  return read;
}

PictureFiles list_coco(const fs::path& base, const fs::path& file) {
  const CocoSet set = read_coco_set(file);
  PictureFiles files;
  files.base = base;
  files.boxes.emplace();
  for (const CocoCategory& category : set.categories) {
    files.class_names.push_back(composed(category.name));
  }
  if (set.categories.empty()) {
    throw InputError(file.string(), 0, "categories: none: there are no classes");
  }
  const fs::path folder = picture_folder(base, file, set);
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
  fit_to_pictures(files);
  return files;
}

bool is_coco_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

}  // namespace

bool is_coco_folder(const fs::path& folder) {
  return !json_files_in(folder / "annotations").empty();
}

PictureFiles open_coco(const fs::path& path, bool training) {
  const bool given = is_coco_file(path);
  const CocoHalves halves = given ? halves_beside(path) : halves_in(path / "annotations");
  const std::optional<fs::path>& half =
      training || !halves.testing ? halves.training : halves.testing;
  if (!half) {
    throw InputError(path.string(),
                     0,
                     "there are pictures for testing here, and none for training: expected "
                     "instances_train*.json");
  }
  fs::path base = path;
  if (given) {
    base = path.parent_path();
    if (base.filename() == "annotations") {
      base = base.parent_path();
    }
  }
  PictureFiles files = list_coco(base, *half);
  if (!halves.testing) {
    files = tenth_or_others(files, !training);
  }
  add_missing_pictures(*half, training, files);
  return files;
}

}  // namespace tessera::engine
