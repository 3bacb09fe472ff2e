#include "engine/data/sets/data_yaml.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/data/text/unicode_names.h"
#include "engine/data/text/yaml_text.h"
#include "engine/files/json_text.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/number_text.h"
#include "partitioner/base/path_kinds.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

namespace {

namespace fs = std::filesystem;

constexpr Index kMostClasses = 1000000;
constexpr std::size_t kMostNameBytes = 1000;

// What a value is, for messages.
std::string found(const YamlValue& value) {
  switch (value.kind) {
    case YamlValue::Nothing:
      return "nothing";
    case YamlValue::List:
      return "a list";
    case YamlValue::Map:
      return "a map";
    case YamlValue::Scalar:
      break;
  }
  return value.text.empty() ? "an empty text" : printable_start(value.text);
}

// What YAML takes for a number or a logical value.
bool is_no_text(const YamlValue& value) {
  return value.kind != YamlValue::Scalar ||
         (!value.quoted &&
          (value.text == "true" || value.text == "false" || finite_number(value.text).has_value()));
}

bool is_one_line(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char letter) {
    return std::iscntrl(static_cast<unsigned char>(letter)) != 0;
  });
}

// A name as all of the program has it. Returns what is wrong with it.
std::string take_name(std::string_view text, std::string& name) {
  const std::string_view words = trimmed(text);
  if (words.empty() || words.size() > kMostNameBytes || !is_one_line(words)) {
    return words.empty() ? "empty: expected a text"
                         : fmt::format("expected one line of at most {} bytes", kMostNameBytes);
  }
  name = composed(words);
  return {};
}

// Numbered from 0, none left out.
std::vector<std::string> in_order(const std::map<Index, std::string>& names,
                                  const fs::path& file,
                                  int line,
                                  const char* what) {
  std::vector<std::string> ordered;
  for (const auto& [number, name] : names) {
    if (number != std::ssize(ordered)) {
      throw InputError(file.string(),
                       line,
                       fmt::format("{}: there is a {} and no {}: expected all numbers from 0",
                                   what,
                                   number,
                                   ordered.size()));
    }
    ordered.push_back(name);
  }
  return ordered;
}

class DataYaml {
 public:
  explicit DataYaml(const fs::path& file) : file_(file), root_(read_yaml(file)) {
    if (root_.kind != YamlValue::Map) {
      fail(root_,
           fmt::format("expected keys such as train, val and names, found {}", found(root_)));
    }
  }

  [[nodiscard]] LabelledSet read() {
    LabelledSet set;
    set.file = file_;
    set.base = base();
    set.class_names = class_names();
    check_class_count(std::ssize(set.class_names));
    set.lines = lines();
    set.training = sources("train", set.base);
    set.validation = sources(root_.find("val") == nullptr ? "validation" : "val", set.base);
    set.testing = sources("test", set.base);
    if (!moved_.empty()) {
      set.problems.push_back(
          {DataFault::Assumed,
           file_.string(),
           fmt::format("there is no {} here: the same without ../ is taken", moved_)});
    }
    return set;
  }

 private:
  [[noreturn]] void fail(const YamlValue& value, const std::string& what) const {
    throw InputError(file_.string(), value.line, what);
  }

  const YamlValue& require(const char* key, const char* what) const {
    const YamlValue* value = root_.find(key);
    if (value == nullptr) {
      throw InputError(
          file_.string(), 0, fmt::format("the key {} ({}) is missing: add it", key, what));
    }
    return *value;
  }

  fs::path path_of(const std::string& key, const YamlValue& value) const {
    if (value.kind != YamlValue::Scalar || value.text.empty() || !is_one_line(value.text)) {
      fail(value,
           fmt::format("{}: expected a path, found {}",
                       key,
                       value.kind == YamlValue::Scalar && !value.text.empty()
                           ? "a text with control characters"
                           : found(value)));
    }
    return value.text;
  }

  fs::path base() const {
    fs::path beside = file_.has_parent_path() ? file_.parent_path() : ".";
    const YamlValue* path = root_.find("path");
    if (path == nullptr || (path->kind == YamlValue::Scalar && path->text.empty())) {
      return beside;
    }
    fs::path base = (beside / path_of("path", *path)).lexically_normal();
    if (!is_folder(base)) {
      fail(*path,
           fmt::format("path: there is no folder {}: correct it, or remove this line where train "
                       "and val lie beside this file",
                       printable_start(base.string(), 200)));
    }
    return base;
  }

  std::string name_of(const YamlValue& value, Index number) const {
    if (is_no_text(value)) {
      fail(value,
           fmt::format("names: class {} is {}: expected a text{}",
                       number,
                       found(value),
                       value.items.empty() ? ", in quotes" : ""));
    }
    std::string name;
    if (const std::string wrong = take_name(value.text, name); !wrong.empty()) {
      fail(value, fmt::format("names: class {}: {}", number, wrong));
    }
    return name;
  }

  std::vector<std::string> class_names() const {
    const YamlValue& names = require("names", "a list of the classes, or a map from 0");
    if ((names.kind != YamlValue::List && names.kind != YamlValue::Map) || names.items.empty()) {
      fail(names,
           fmt::format("names: expected a list of the classes, or a map from 0, found {}",
                       names.items.empty() && names.kind != YamlValue::Scalar ? "an empty one"
                                                                              : found(names)));
    }
    std::map<Index, std::string> numbered;
    const bool is_map = names.kind == YamlValue::Map;
    for (std::size_t i = 0; i < names.items.size(); i += is_map ? 2 : 1) {
      const std::optional<Index> number =
          is_map ? parsed_number<Index>(names.items[i].text, 0, kMostClasses - 1)
                 : std::optional(static_cast<Index>(i));
      if (!number || numbered.count(*number) > 0) {
        fail(names.items[i],
             number ? fmt::format("names: class {} is there a second time", *number)
                    : fmt::format("names: expected the number of a class, from 0, found {}",
                                  found(names.items[i])));
      }
      numbered[*number] = name_of(names.items[is_map ? i + 1 : i], *number);
    }
    return in_order(numbered, file_, names.line, "names");
  }

  void check_class_count(Index names) const {
    const YamlValue* nc = root_.find("nc");
    if (nc == nullptr) {
      return;
    }
    const auto classes = parsed_number<Index>(nc->text, 1, kMostClasses);
    if (nc->kind != YamlValue::Scalar || classes != names) {
      fail(*nc, fmt::format("nc: expected the number of names, {}, found {}", names, found(*nc)));
    }
  }

  LabelLines lines() const {
    const YamlValue* shape = root_.find("kpt_shape");
    if (shape == nullptr) {
      return {.polygons = true};
    }
    constexpr Index kMostKeypoints = 1000;
    const bool two = shape->kind == YamlValue::List && shape->items.size() == 2;
    const auto points =
        two ? parsed_number<Index>(shape->items[0].text, 1, kMostKeypoints) : std::nullopt;
    const auto numbers = two ? parsed_number<Index>(shape->items[1].text, 2, 3) : std::nullopt;
    if (!points || !numbers) {
      fail(*shape,
           fmt::format("kpt_shape: expected [K, D] of 1 to {} keypoints with 2 or 3 numbers each",
                       kMostKeypoints));
    }
    return {.pose_numbers = 5 + *points * *numbers};
  }

  // Of a path that begins with ../ and leads to nothing, what is left without that, if it is there.
  fs::path as_meant(const fs::path& path, const fs::path& base) {
    fs::path inside = path.lexically_relative("..");
    if (path.is_absolute() || *path.begin() != ".." || is_there(base / path) ||
        !is_there(base / inside)) {
      return path;
    }
    moved_ += (moved_.empty() ? "" : ", ") + printable_start(path.string(), 200);
    return inside;
  }

  std::vector<PictureSource> sources(const std::string& key, const fs::path& base) {
    const YamlValue* value = root_.find(key);
    std::vector<PictureSource> all;
    if (value == nullptr) {
      return all;
    }
    if (value->kind != YamlValue::List) {
      return {{as_meant(path_of(key, *value), base), key, value->line}};
    }
    for (const YamlValue& each : value->items) {
      all.push_back({as_meant(path_of(key, each), base), key, each.line});
    }
    return all;
  }

  const fs::path& file_;
  YamlValue root_;
  std::string moved_;  // paths that another one is taken for
};

}  // namespace

LabelledSet read_data_yaml(const fs::path& file) {
  return DataYaml(file).read();
}

std::vector<std::string> read_notes_names(const fs::path& file) {
  using nlohmann::json;
  const auto fail = [&](const std::string& what) {
    throw InputError(file.string(),
                     0,
                     what + R"(: expected {"categories": [{"id": 0, "name": )"
                            R"("..."}, ...], ...})");
  };
  const std::optional<std::string> text = read_json_text(file, Index{1} << 20);
  const json notes = json::parse(text.value_or(""), nullptr, false);
  if (!notes.is_object() || !notes.contains("categories") || !notes["categories"].is_array() ||
      notes["categories"].empty()) {
    fail("this is not JSON with the names of classes");
  }
  std::map<Index, std::string> names;
  for (const json& each : notes["categories"]) {
    if (!each.is_object() || !each.contains("id") || !each["id"].is_number_integer() ||
        !each.contains("name") || !each["name"].is_string()) {
      fail(fmt::format("category {} has no id and name", names.size()));
    }
    std::string name;
    const auto id = each["id"].get<Index>();
    const std::string wrong = take_name(each["name"].get<std::string>(), name);
    if (!wrong.empty() || !names.emplace(id, name).second) {
      fail(wrong.empty() ? fmt::format("category {} is there a second time", id)
                         : fmt::format("the name of category {}: {}", id, wrong));
    }
  }
  return in_order(names, file, 0, "categories");
}

}  // namespace tessera::engine
