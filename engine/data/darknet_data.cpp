#include <charconv>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <unordered_map>

#include "engine/data/class_names.h"
#include "engine/data/picture_files.h"
#include "engine/data/read_file.h"
#include "partitioner/errors.h"

namespace engine {

namespace {

namespace fs = std::filesystem;
using partitioner::InputError;

constexpr Index kMaxClasses = 1000000;

struct Value {
  std::string text;
  int line = 0;
};

using DataFile = std::map<std::string, Value>;

std::string_view without_spaces(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

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
    values[std::string(without_spaces(line.substr(0, equals)))] = {
        std::string(without_spaces(line.substr(equals + 1))), lines.number(i)};
  }
  return values;
}

// The file that a value names: from the .data file's folder, else from the current folder.
fs::path find_named(const fs::path& file, const std::string& key, const Value& value) {
  std::error_code error;
  for (const fs::path& candidate : {file.parent_path() / value.text, fs::path(value.text)}) {
    if (!value.text.empty() && fs::is_regular_file(candidate, error)) {
      return candidate;
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

// The first `classes` lines (all, where that is 0).
std::vector<std::string> read_names(const fs::path& path, Index classes) {
  std::vector<std::string> names = read_class_names(path);
  if (static_cast<Index>(names.size()) < classes) {
    throw InputError(path.string(),
                     0,
                     fmt::format("{} names were found here, {} classes need one each: add the "
                                 "missing ones",
                                 names.size(),
                                 classes));
  }
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
  Index classes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), classes);
  if (error != std::errc() || end != text.data() + text.size() || classes < 1 ||
      classes > kMaxClasses) {
    throw InputError(
        file.string(),
        found->second.line,
        fmt::format("classes = {}: a number from 1 to {} was expected", text, kMaxClasses));
  }
  return classes;
}

// Finds the class whose label occurs in a path: by each length of label, longest first, every
// window of that length is looked up, which for a thousand labels is far faster than searching for
// each.
class LabelFinder {
 public:
  LabelFinder(const std::vector<std::string>& labels, const fs::path& source) {
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const auto [first, added] =
          by_length_[labels[i].size()].emplace(labels[i], static_cast<int>(i));
      if (!added) {
        throw InputError(
            source.string(),
            0,
            fmt::format(
                "\"{}\" is the label of class {} and of class {}: labels must differ, for they are "
                "looked for in the pictures' paths",
                labels[i],
                first->second,
                i));
      }
    }
  }

  // Throws InputError at `list`:`line` where no class or several fit.
  [[nodiscard]] int find(std::string_view path, const fs::path& list, int line) const {
    for (const auto& [length, labels] : by_length_) {
      int found = -1;
      for (std::size_t at = 0; at + length <= path.size(); ++at) {
        const auto match = labels.find(path.substr(at, length));
        if (match == labels.end() || match->second == found) {
          continue;
        }
        if (found >= 0) {
          throw InputError(list.string(),
                           line,
                           fmt::format("{}: the path holds \"{}\" and another label as long, so "
                                       "its class is open: rename it",
                                       path,
                                       match->first));
        }
        found = match->second;
      }
      if (found >= 0) {
        return found;
      }
    }
    throw InputError(list.string(),
                     line,
                     fmt::format("{}: the path holds none of the labels, so its class is unknown: "
                                 "rename it or complete the labels",
                                 path));
  }

 private:
  std::map<std::size_t, std::unordered_map<std::string_view, int>, std::greater<>> by_length_;
};

}  // namespace

PictureFiles open_darknet_data(const fs::path& file, bool training) {
  const DataFile values = read_data_file(file);
  const auto require = [&](const char* key, const char* what) {
    const auto found = values.find(key);
    if (found == values.end()) {
      throw InputError(
          file.string(), 0, fmt::format("the key {} ({}) is missing: add it", key, what));
    }
    return find_named(file, key, found->second);
  };
  const Index classes = read_class_count(file, values);
  const bool has_labels = values.count("labels") > 0;
  const fs::path label_path = has_labels
                                  ? require("labels", "")
                                  : require("names", "or labels: a file with a class a line");
  const std::vector<std::string> labels = read_names(label_path, classes);

  const fs::path list = training ? require("train", "a file with a picture's path a line")
                                 : require("valid", "a file with a picture's path a line");
  PictureFiles files = list_file_pictures(list);
  files.base = file.parent_path();
  const LabelFinder finder(labels, label_path);
  const TextLines lines(list);
  files.labels.reserve(static_cast<std::size_t>(lines.size()));
  for (Index i = 0; i < lines.size(); ++i) {
    files.labels.push_back(finder.find(lines.text(i), list, lines.number(i)));
  }
  files.class_names = has_labels && values.count("names") > 0
                          ? read_names(require("names", ""), static_cast<Index>(labels.size()))
                          : labels;
  return files;
}

}  // namespace engine
