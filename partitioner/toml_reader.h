// TOML files that people write: reads values, and reports every fault in them as an InputError with
// the file's name and the line. toml++ comes as its shared library, as its CMake target has it.

#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <toml++/toml.h>
#include <utility>
#include <vector>

#include "partitioner/region.h"

namespace partitioner {

class TomlReader {
 public:
  // `name` is what messages call the file.
  explicit TomlReader(std::string name) : name_(std::move(name)) {}

  [[nodiscard]] toml::table parse(const std::string& text) const;

  [[noreturn]] void fail(const toml::node& node, const std::string& message) const;

  void check_keys(const toml::table& table, std::initializer_list<std::string_view> known) const;
  [[nodiscard]] const toml::node& required(const toml::table& table, const char* key) const;

  // The tables, each under its own [[key]]; none where there is no such key.
  [[nodiscard]] std::vector<const toml::table*> tables(const toml::table& table,
                                                       const char* key) const;

  // A whole number from `least` to `most`; `key` is where it was found.
  [[nodiscard]] Index integer(const toml::node& node,
                              const char* key,
                              Index least,
                              Index most) const;

  // Values of keys that must be there.
  [[nodiscard]] Index integer(const toml::table& table, const char* key, Index least) const;
  [[nodiscard]] double positive(const toml::table& table, const char* key) const;  // 1e-18 to inf
  [[nodiscard]] double not_negative(const toml::table& table, const char* key) const;  // finite
  [[nodiscard]] std::string text(const toml::node& node, const char* key) const;

 private:
  [[nodiscard]] double number(const toml::node& node, const char* key) const;

  std::string name_;
};

// A text between quotes, as TOML wants it.
[[nodiscard]] std::string toml_quoted(std::string_view text);

}  // namespace partitioner
