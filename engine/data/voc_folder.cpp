#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>
#include <system_error>

#include "engine/base/in_threads.h"
#include "engine/data/box_sets.h"
#include "engine/data/class_names.h"
#include "engine/data/folder_listing.h"
#include "engine/data/read_file.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

namespace {

namespace fs = std::filesystem;

constexpr const char* kAnnotations = "Annotations";
constexpr const char* kVocPictures = "JPEGImages";

bool is_folder_there(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

bool is_file_there(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

// Of a half of a data set: which pictures, and the file that says so.
struct VocHalf {
  fs::path list;  // empty: there is none
  bool divided = false;
};

VocHalf half_of_voc(const fs::path& folder, bool training) {
  const fs::path sets = folder / "ImageSets" / "Main";
  const bool has_test = is_file_there(sets / "test.txt");
  const auto first_there = [&](std::vector<const char*> names) {
    for (const char* name : names) {
      if (is_file_there(sets / name)) {
        return sets / name;
      }
    }
    return fs::path();
  };
  const fs::path train = has_test ? first_there({"trainval.txt", "train.txt"})
                                  : first_there({"train.txt", "trainval.txt"});
  const fs::path test = has_test ? sets / "test.txt" : first_there({"val.txt"});
  if (train.empty() != test.empty()) {
    throw InputError(sets.string(),
                     0,
                     train.empty()
                         ? "neither train.txt nor trainval.txt is here, which say what is "
                           "for training"
                         : "neither test.txt nor val.txt is here, which say what is for "
                           "testing");
  }
  return {training ? train : test, train.empty()};
}

// The annotations of a folder by the name that they share with their picture.
struct VocAnnotations {
  std::vector<std::string> names;  // sorted
  std::vector<VocAnnotation> read;

  [[nodiscard]] const VocAnnotation* find(const std::string& name) const {
    const auto found = std::lower_bound(names.begin(), names.end(), name);
    return found == names.end() || *found != name
               ? nullptr
               : &read[static_cast<std::size_t>(found - names.begin())];
  }
};

VocAnnotations read_annotations(const fs::path& folder) {
  VocAnnotations all;
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder, error);
       !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    const fs::path& path = entry->path();
    if (path.extension() == ".xml" && path.filename().string().front() != '.') {
      all.names.push_back(path.stem().string());
    }
  }
  if (error) {
    throw InputError(folder.string(), 0, "cannot be listed: " + error.message());
  }
  std::sort(all.names.begin(), all.names.end());
  all.read.resize(all.names.size());
  if (all.names.empty()) {
    return all;
  }
  const auto read = [&](Index item) {
    const auto i = static_cast<std::size_t>(item);
    all.read[i] = read_voc_annotation(folder / (all.names[i] + ".xml"));
  };
  read(0);  // alone: it makes the XML library ready
  for_each_in_threads(std::ssize(all.names), read);
  return all;
}

std::vector<std::string> voc_class_names(const fs::path& folder, const VocAnnotations& all) {
  if (is_file_there(folder / "classes.txt")) {
    return read_class_names(folder / "classes.txt");
  }
  std::set<std::string> names;
  for (const VocAnnotation& each : all.read) {
    for (const VocObject& object : each.objects) {
      names.insert(object.name);
    }
  }
  for (const VocAnnotation& each : all.read) {
    if (names.empty() && !each.problems.empty()) {
      const DataProblem& first = each.problems.front();
      throw InputError(fmt::format(
          "{}{}{}; no object is named", first.where, first.where.empty() ? "" : ": ", first.what));
    }
  }
  if (names.empty()) {
    throw InputError((folder / kAnnotations).string(),
                     0,
                     "no object is named in these annotations: there are no classes");
  }
  return {names.begin(), names.end()};
}

class VocFolder {
 public:
  VocFolder(const fs::path& folder, bool allow_unlabelled)
      : folder_(folder),
        allow_unlabelled_(allow_unlabelled),
        annotations_(read_annotations(folder / kAnnotations)) {
    files_.base = folder;
    files_.class_names = voc_class_names(folder, annotations_);
    files_.boxes.emplace();
    FolderListing listing = list_pictures_directly_in(folder / kVocPictures);
    SharedNames shared;
    for (const std::string& name : listing.pictures) {
      const auto [first, is_new] = pictures_.emplace(fs::path(name).stem().string(), name);
      if (!is_new) {
        shared.add(fmt::format("{} counts, {} is left out", first->second, name));
      }
    }
    shared.add_problem(folder / kVocPictures,
                       "pictures have the name of another, and share its annotation",
                       files_);
    files_.left_out = std::move(listing.left_out);
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
    std::set<std::string> names(annotations_.names.begin(), annotations_.names.end());
    for (const auto& [name, file] : pictures_) {
      names.insert(name);
    }
    for (const std::string& name : names) {
      add(name, 0);
    }
    return fitted();
  }

 private:
  PictureFiles fitted() {
    fit_to_pictures(files_);
    return std::move(files_);
  }

  void add(const std::string& name, int line) {
    const auto picture = pictures_.find(name);
    const std::string path = fmt::format(
        "{}/{}", kVocPictures, picture == pictures_.end() ? name + ".jpg" : picture->second);
    const fs::path file = folder_ / kAnnotations / (name + ".xml");
    const VocAnnotation* annotation = annotations_.find(name);
    ReadBoxes read;
    if (annotation != nullptr) {
      read = boxes_of_voc(*annotation, files_.class_names, file);
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
  bool allow_unlabelled_;
  VocAnnotations annotations_;
  std::map<std::string, std::string> pictures_;  // file names, by what stands before the ending
  PictureFiles files_;
};

}  // namespace

bool is_voc_folder(const fs::path& folder) {
  return is_folder_there(folder / kAnnotations) && is_folder_there(folder / kVocPictures);
}

PictureFiles open_voc_folder(const fs::path& folder, bool training, bool allow_unlabelled) {
  const VocHalf half = half_of_voc(folder, training);
  VocFolder reader(folder, allow_unlabelled);
  PictureFiles files =
      half.divided ? tenth_or_others(reader.all(), !training) : reader.listed_in(half.list);
  add_missing_pictures(half.divided ? folder : half.list, training, files);
  return files;
}

}  // namespace tessera::engine
