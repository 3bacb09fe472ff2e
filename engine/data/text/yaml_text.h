// A YAML file as a tree of values, read by yaml-cpp, in bounded memory whatever is in it: files of
// 1 MiB, 32 levels of nesting, 2^18 values. What an alias refers to is copied, and counts again.

#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::engine {

struct YamlValue {
  enum Kind { Nothing, Scalar, List, Map } kind = Nothing;
  bool quoted = false;  // a text, whatever it looks like
  int line = 0;
  std::string text;              // of a scalar
  std::vector<YamlValue> items;  // of a list; of a map a key before each value

  // The value of a key of a map; nullptr where it is missing, or null.
  [[nodiscard]] const YamlValue* find(std::string_view key) const;
};

// The only document of a file of UTF-8 or UTF-16. Throws InputError with the file, and with the
// line where one is to blame. Keys are scalars, each once in its map.
[[nodiscard]] YamlValue read_yaml(const std::filesystem::path& file);

}  // namespace tessera::engine
