#include <charconv>
#include <fmt/format.h>
#include <map>

#include "engine/data/class_names.h"
#include "engine/data/path_labels.h"
#include "engine/data/picture_files.h"
#include "engine/data/read_file.h"
#include "partitioner/base/errors.h"
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
    const std::string key(without_spaces(line.substr(0, equals)));
    const Value value{std::string(without_spaces(line.substr(equals + 1))), lines.number(i)};
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
std::vector<std::string> read_names_file(const fs::path& path, Index classes) {
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
        fmt::format("classes = {}: expected a number from 1 to {}", text, kMaxClasses));
  }
  return classes;
}

// Only what looks like a path is repeated: a .data file may name any file as its list.
DataProblem unlabelled(const fs::path& list,
                       int line,
                       std::string_view path,
                       const std::string& why) {
  constexpr std::size_t kShownBytes = 200;
  const bool shown = is_picture_name(path);
  return {DataFault::Unlabelled,
          fmt::format("{}:{}", list.string(), line),
          shown ? fmt::format("{}: {}", printable_start(path, kShownBytes), why)
                : "this line is not the path of a picture: expected one per line"};
}

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
                                  : require("names", "or labels: a file with one class per line");
  const std::vector<std::string> labels = read_names_file(label_path, classes);

  const fs::path list = training ? require("train", "a file with one picture path per line")
                                 : require("valid", "a file with one picture path per line");
  const PictureFiles listed = list_file_pictures(list);
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
