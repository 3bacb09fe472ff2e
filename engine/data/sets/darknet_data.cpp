#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <system_error>

#include "engine/data/sets/box_sets.h"
#include "engine/data/sets/labelled_pictures.h"
#include "engine/data/sets/path_labels.h"
#include "engine/data/sets/picture_files.h"
#include "engine/data/text/class_names.h"
#include "engine/data/text/read_file.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/number_text.h"
#include "partitioner/base/path_kinds.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

namespace {

namespace fs = std::filesystem;

constexpr Index kMaxClasses = 1000000;

struct Value {
  std::string text;
  int line = 0;
};

using DataFile = std::map<std::string, Value>;

DataFile read_data_file(const fs::path& file) {
  DataFile values;
  const TextLines lines(file);
  for (Index i = 0; i < lines.size(); ++i) {
    const std::string_view line = lines.text(i);
    if (line.front() == '#' || line.front() == ';') {
      continue;
    }
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) {
      throw InputError(file.string(),
                       lines.number(i),
                       "this line is not `key = value`, as a Darknet .data file has them");
    }
    const std::string key(trimmed(line.substr(0, equals)));
    const Value value{std::string(trimmed(line.substr(equals + 1))), lines.number(i)};
    if (const auto [before, is_new] = values.emplace(key, value); !is_new) {
      throw InputError(file.string(),
                       value.line,
                       fmt::format("{} is given a second time, after line {}: remove one of them",
                                   printable_start(key),
                                   before->second.line));
    }
  }
  return values;
}

// `path` without the folder data that it begins with: so CVAT names what lies beside its obj.data.
fs::path beside_data_file(const fs::path& path) {
  return path.has_relative_path() && *path.begin() == "data" ? path.lexically_relative("data")
                                                             : fs::path();
}

// The file that a value names: from the .data file's folder, else from the current folder.
fs::path find_named(const fs::path& file, const std::string& key, const Value& value) {
  for (const fs::path& path : {file.parent_path() / value.text,
                               fs::path(value.text),
                               file.parent_path() / beside_data_file(value.text)}) {
    if (!value.text.empty() && is_file(path)) {
      return path;
    }
  }
  throw InputError(
      file.string(),
      value.line,
      fmt::format(
          "{} = {}: there is no such file, neither beside this one nor in the current folder",
          key,
          value.text));
}

// All of them; there must be as many as classes (any number, where that is 0).
std::vector<std::string> read_all_names(const fs::path& path, Index classes) {
  std::vector<std::string> names = read_class_names(path);
  if (static_cast<Index>(names.size()) < classes) {
    throw InputError(path.string(),
                     0,
                     fmt::format("{} names were found here, {} classes need one each: add the "
                                 "missing ones",
                                 names.size(),
                                 classes));
  }
  return names;
}

// Those of the first `classes` lines.
std::vector<std::string> read_names_file(const fs::path& path, Index classes) {
  std::vector<std::string> names = read_all_names(path, classes);
  if (classes > 0) {
    names.resize(static_cast<std::size_t>(classes));
  }
  return names;
}

Index read_class_count(const fs::path& file, const DataFile& values) {
  const auto found = values.find("classes");
  if (found == values.end()) {
    return 0;
  }
  const std::string& text = found->second.text;
  const auto classes = parsed_number<Index>(text, 1, kMaxClasses);
  if (!classes) {
    throw InputError(
        file.string(),
        found->second.line,
        fmt::format("classes = {}: expected a number from 1 to {}", text, kMaxClasses));
  }
  return *classes;
}

// The file that a key names, which must be there.
fs::path require_named(const fs::path& file,
                       const DataFile& values,
                       const char* key,
                       const char* what) {
  const auto found = values.find(key);
  if (found == values.end()) {
    throw InputError(
        file.string(), 0, fmt::format("the key {} ({}) is missing: add it", key, what));
  }
  return find_named(file, key, found->second);
}

fs::path require_list(const fs::path& file, const DataFile& values, bool training) {
  return require_named(
      file, values, training ? "train" : "valid", "a file with one picture path per line");
}

// The pictures of a list that a .data file names.
PictureFiles list_named(const fs::path& file, const fs::path& list) {
  PictureFiles listed = list_file_pictures(list);
  listed.base = file.parent_path();
  PathList paths;
  for (Index item = 0; item < listed.paths.size(); ++item) {
    const fs::path beside = beside_data_file(listed.paths[item]);
    paths.add(!beside.empty() && !is_there(picture_path(listed, item)) &&
                      is_there(listed.base / beside)
                  ? beside.string()
                  : std::string(listed.paths[item]));
  }
  listed.paths = std::move(paths);
  return listed;
}

// Classes are named by their numbers if there is no file of names. Names beyond the number of
// classes are a problem.
std::vector<std::string> box_class_names(const fs::path& file,
                                         const DataFile& values,
                                         std::vector<DataProblem>& problems) {
  const Index classes = read_class_count(file, values);
  for (const char* key : {"names", "labels"}) {
    if (values.count(key) > 0) {
      const fs::path path = require_named(file, values, key, "");
      std::vector<std::string> names = read_all_names(path, classes);
      if (classes > 0 && std::ssize(names) > classes) {
        problems.push_back(
            {DataFault::SpareName,
             path.string(),
             fmt::format("{} names for classes={}: the first ones count, from {} to "
                         "{}",
                         names.size(),
                         classes,
                         printable_start(names.front()),
                         printable_start(names[static_cast<std::size_t>(classes) - 1]))});
        names.resize(static_cast<std::size_t>(classes));
      }
      return names;
    }
  }
  if (classes == 0) {
    throw InputError(
        file.string(), 0, "the key names (a file with one class per line) is missing: add it");
  }
  std::vector<std::string> names;
  for (Index label = 0; label < classes; ++label) {
    names.push_back(std::to_string(label));
  }
  return names;
}

}  // namespace

bool has_label_texts(const fs::path& file) {
  constexpr Index kMostLookedAt = 100;
  const DataFile values = read_data_file(file);
  if (values.count("labels") > 0) {
    return false;
  }
  for (const char* key : {"train", "valid"}) {
    if (values.count(key) == 0) {
      continue;
    }
    const PictureFiles listed = list_named(file, require_named(file, values, key, ""));
    for (Index item = 0; item < std::min(listed.paths.size(), kMostLookedAt); ++item) {
      if (is_file(label_path(picture_path(listed, item)))) {
        return true;
      }
    }
  }
  return false;
}

PictureFiles open_darknet_boxes(const fs::path& file, bool training, bool allow_unlabelled) {
  const DataFile values = read_data_file(file);
  PictureFiles files;
  files.class_names = box_class_names(file, values, files.problems);
  files.base = file.parent_path();
  const bool divided = values.count("valid") == 0 && values.count("train") > 0;
  files.list = require_list(file, values, training || divided);
  files.boxes.emplace();
  (void)add_labelled_pictures(list_named(file, files.list), {.may_lack = allow_unlabelled}, files);
  if (divided) {
    files = tenth_or_others(files, !training);
    add_missing_pictures(files.list, training, files);
  }
  return files;
}

PictureFiles open_darknet_data(const fs::path& file, bool training) {
  const DataFile values = read_data_file(file);
  const auto require = [&](const char* key, const char* what) {
    return require_named(file, values, key, what);
  };
  const Index classes = read_class_count(file, values);
  const bool has_labels = values.count("labels") > 0;
  const fs::path label_path = has_labels
                                  ? require("labels", "")
                                  : require("names", "or labels: a file with one class per line");
  const std::vector<std::string> labels = read_names_file(label_path, classes);

  const fs::path list = require_list(file, values, training);
  const PictureFiles listed = list_named(file, list);
  PictureFiles files;
  files.base = file.parent_path();
  files.list = list;
  const PathLabels finder(labels, label_path);
  for (Index i = 0; i < listed.paths.size(); ++i) {
    const int line = listed.line_numbers[static_cast<std::size_t>(i)];
    const PathLabels::Found found = finder.find(listed.paths[i]);
    if (found.label < 0) {
      files.problems.push_back(unlabelled(list, line, listed.paths[i], found.problem));
      continue;
    }
    files.paths.add(listed.paths[i]);
    files.labels.push_back(found.label);
    files.line_numbers.push_back(line);
  }
  files.class_names = has_labels && values.count("names") > 0
                          ? read_names_file(require("names", ""), static_cast<Index>(labels.size()))
                          : labels;
  return files;
}

}  // namespace tessera::engine
