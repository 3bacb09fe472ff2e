#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "engine/base/in_threads.h"
#include "engine/data/sets/box_sets.h"
#include "engine/data/sets/folder_listing.h"
#include "engine/data/text/class_names.h"
#include "engine/data/text/read_file.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/path_kinds.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

namespace {

namespace fs = std::filesystem;

// Where annotations and pictures of one half are, relative to the data set's folder.
struct VocPlace {
  fs::path annotations;
  fs::path pictures;
};

// Annotations beside their pictures, as LabelImg and others write them; without any picture they
// are no other data set either.
bool holds_annotated_pictures(const fs::path& folder) {
  const std::vector<fs::path> annotations = files_ending_in(folder, ".xml");
  if (annotations.empty()) {
    return false;
  }
  std::set<std::string> pictures;
  for (const std::string& name : list_pictures_directly_in(folder).pictures) {
    pictures.insert(fs::path(name).stem().string());
  }
  return std::any_of(
             annotations.begin(),
             annotations.end(),
             [&](const fs::path& each) { return pictures.count(each.stem().string()) > 0; }) ||
         (pictures.empty() && folders_in(folder).empty());
}

// The half of a folder, as it is divided by folders in it; of one that is not, all of it.
struct VocLayout {
  VocPlace training;
  std::optional<VocPlace> testing;
  std::optional<DataProblem> unused;  // folders
};

std::optional<VocLayout> layout_of_voc(const fs::path& folder) {
  for (const auto& [annotations, pictures] :
       {std::pair{"Annotations", "JPEGImages"}, std::pair{"annotations", "images"}}) {
    if (is_folder(folder / annotations) && is_folder(folder / pictures) &&
        (annotations[0] == 'A' || !files_ending_in(folder / annotations, ".xml").empty())) {
      return VocLayout{{annotations, pictures}, {}, {}};
    }
  }
  if (holds_annotated_pictures(folder)) {
    return VocLayout{};
  }
  const std::vector<std::string> training = names_of_half(folders_in(folder), true);
  if (training.size() != 1 || !holds_annotated_pictures(folder / training[0])) {
    return std::nullopt;
  }
  const HalfFolders halves = half_folders(folder);
  VocLayout layout{{halves.training, halves.training}, {}, unused_beside(halves, folder)};
  if (!halves.testing.empty()) {
    layout.testing = {halves.testing, halves.testing};
  }
  return layout;
}

// Which pictures of a folder are of a half, and the file that says so.
struct VocHalf {
  fs::path list;         // empty: there is none
  bool divided = false;  // every tenth is for testing
};

VocHalf half_of_voc(const fs::path& folder, bool training) {
  const fs::path sets = folder / "ImageSets" / "Main";
  std::vector<std::string> lists;
  for (const fs::path& list : files_ending_in(sets, ".txt")) {
    lists.push_back(list.stem().string());
  }
  std::vector<std::string> train = names_of_half(lists, true);
  const std::vector<std::string> test = names_of_half(lists, false);
  if (std::find(lists.begin(), lists.end(), "trainval") != lists.end()) {
    const bool has_test = is_file(sets / "test.txt");
    train.insert(has_test ? train.begin() : train.end(), "trainval");
  }
  if (train.empty() != test.empty()) {
    throw InputError(sets.string(),
                     0,
                     train.empty()
                         ? "neither train.txt nor trainval.txt is here, which say what is "
                           "for training"
                         : "neither test.txt nor val.txt is here, which say what is for "
                           "testing");
  }
  return train.empty() ? VocHalf{{}, true}
                       : VocHalf{sets / ((training ? train : test).front() + ".txt"), false};
}

// The annotations of a folder by the name that they share with their picture.
struct VocAnnotations {
  std::vector<fs::path> paths;  // sorted
  std::vector<VocAnnotation> read;
  std::map<std::string, std::size_t> places;  // in these lists, by what stands before the ending
};

VocAnnotations read_annotations(const fs::path& folder) {
  VocAnnotations all;
  all.paths = files_ending_in(folder, ".xml");
  all.read.resize(all.paths.size());
  for (std::size_t i = 0; i < all.paths.size(); ++i) {
    all.places.emplace(all.paths[i].stem().string(), i);
  }
  if (all.paths.empty()) {
    return all;
  }
  const auto read = [&](Index item) {
    const auto i = static_cast<std::size_t>(item);
    all.read[i] = read_voc_annotation(all.paths[i]);
  };
  read(0);  // alone: it makes the XML library ready
  for_each_in_threads(std::ssize(all.paths), read);
  return all;
}

void add_class_names(const VocAnnotations& all, std::set<std::string>& names) {
  for (const VocAnnotation& each : all.read) {
    for (const VocObject& object : each.objects) {
      names.insert(object.name);
    }
  }
}

class VocFolder {
 public:
  VocFolder(const fs::path& folder, VocPlace place, bool allow_unlabelled)
      : folder_(folder),
        place_(std::move(place)),
        allow_unlabelled_(allow_unlabelled),
        annotations_(read_annotations(folder / place_.annotations)) {
    files_.base = folder;
    files_.boxes.emplace();
    FolderListing listing = list_pictures_directly_in(folder / place_.pictures);
    SharedNames shared;
    for (const std::string& name : listing.pictures) {
      const auto [first, is_new] = pictures_.emplace(fs::path(name).stem().string(), name);
      if (!is_new) {
        shared.add(fmt::format("{} counts, {} is left out", first->second, name));
      }
    }
    shared.add_problem(folder / place_.pictures,
                       "pictures have the name of another, and share its annotation",
                       files_);
    files_.left_out = std::move(listing.left_out);
    if (place_.annotations == place_.pictures) {
      files_.left_out.erase(".xml");
    }
  }

  // Those of classes.txt, else of all objects in both halves.
  void find_classes(const std::optional<VocPlace>& other) {
    if (is_file(folder_ / "classes.txt")) {
      name_classes(read_class_names(folder_ / "classes.txt"));
      return;
    }
    std::set<std::string> names;
    add_class_names(annotations_, names);
    if (other) {
      add_class_names(read_annotations(folder_ / other->annotations), names);
    }
    if (names.empty()) {
      fail_without_classes();
    }
    name_classes({names.begin(), names.end()});
  }

  PictureFiles listed_in(const fs::path& list) {
    files_.list = list;
    const TextLines lines(list, "a text file with one picture per line");
    for (Index i = 0; i < lines.size(); ++i) {
      const std::string_view line = lines.text(i);
      add(std::string(line.substr(0, line.find_first_of(" \t"))), lines.number(i));
    }
    return fitted();
  }

  PictureFiles all() {
    std::set<std::string> names;
    for (const auto& [name, place] : annotations_.places) {
      names.insert(name);
    }
    for (const auto& [name, file] : pictures_) {
      names.insert(name);
    }
    for (const std::string& name : names) {
      add(name, 0);
    }
    return fitted();
  }

 private:
  // The first fault of an annotation may say why.
  [[noreturn]] void fail_without_classes() const {
    for (const VocAnnotation& each : annotations_.read) {
      if (!each.problems.empty()) {
        const DataProblem& first = each.problems.front();
        throw InputError(fmt::format("{}{}{}; no object is named",
                                     first.where,
                                     first.where.empty() ? "" : ": ",
                                     first.what));
      }
    }
    throw InputError((folder_ / place_.annotations).string(),
                     0,
                     "no object is named in these annotations: there are no classes");
  }

  PictureFiles fitted() {
    fit_to_pictures(files_);
    return std::move(files_);
  }

  void name_classes(std::vector<std::string> names) {
    classes_ = numbers_of(names);
    files_.class_names = std::move(names);
  }

  void add(const std::string& name, int line) {
    const auto picture = pictures_.find(name);
    const std::string path =
        (place_.pictures / (picture == pictures_.end() ? name + ".jpg" : picture->second)).string();
    const fs::path file = folder_ / place_.annotations / (name + ".xml");
    const auto annotation = annotations_.places.find(name);
    ReadBoxes read;
    if (annotation != annotations_.places.end()) {
      read = boxes_of_voc(
          annotations_.read[annotation->second], classes_, annotations_.paths[annotation->second]);
    } else if (!allow_unlabelled_) {
      read.problems.push_back(
          {DataFault::Unlabelled,
           line > 0 ? fmt::format("{}:{}", files_.list.string(), line) : (folder_ / path).string(),
           fmt::format("there is no {}, which says what is on this picture: add one, or give "
                       "--allow-unlabelled if nothing is on such pictures",
                       printable_start(file.string(), 200))});
    }
    add_picture_with_boxes(path, line, read, files_);
  }

  fs::path folder_;
  VocPlace place_;
  bool allow_unlabelled_;
  VocAnnotations annotations_;
  ClassNumbers classes_;
  std::map<std::string, std::string> pictures_;  // file names, by what stands before the ending
  PictureFiles files_;
};

}  // namespace

bool is_voc_folder(const fs::path& folder) {
  return layout_of_voc(folder).has_value();
}

PictureFiles open_voc_folder(const fs::path& folder, bool training, bool allow_unlabelled) {
  const std::optional<VocLayout> layout = layout_of_voc(folder);
  expects(layout.has_value(), "this is a folder of VOC's");
  const VocHalf half = layout->testing ? VocHalf{} : half_of_voc(folder, training);
  const bool tests = layout->testing && !training;
  const VocPlace& place = tests ? *layout->testing : layout->training;
  VocFolder reader(folder, place, allow_unlabelled);
  reader.find_classes(tests ? layout->training : layout->testing);
  PictureFiles files = half.list.empty() ? reader.all() : reader.listed_in(half.list);
  if (!training && !half.list.empty()) {
    files.left_out.clear();  // pictures of both halves lie in one folder
  }
  if (layout->unused) {
    files.problems.push_back(*layout->unused);
  }
  if (half.divided) {
    files = tenth_or_others(files, !training);
  }
  add_missing_pictures(half.list.empty() ? folder / place.pictures : half.list, training, files);
  return files;
}

}  // namespace tessera::engine
