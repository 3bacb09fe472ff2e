// TOML files that people write: reads values, and reports every fault in them as an InputError with
// the file's name and the line. toml++ comes as its shared library, as its CMake target has it.

#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <toml++/toml.h>
#include <utility>
#include <vector>

#include "partitioner/base/region.h"

namespace tessera {

class TomlReader {
 public:
  // `name` is what messages call the file, `what` it should be ("a cluster profile"), `keys` those
  // that it may have outside of tables.
  TomlReader(std::string name, std::string what, std::initializer_list<std::string_view> keys)
      : name_(std::move(name)), what_(std::move(what)), keys_(keys) {}

  // Nests no deeper than a few brackets, and has no other keys outside of tables. Nothing of the
  // text is quoted where it does not begin with one of the keys: it may be anybody's file.
  [[nodiscard]] toml::table parse(const std::string& text) const;

  [[noreturn]] void fail(const toml::node& node, const std::string& message) const;

  void check_keys(const toml::table& table, std::initializer_list<std::string_view> known) const;
  [[nodiscard]] const toml::node& required(const toml::table& table, const char* key) const;
  [[nodiscard]] const toml::table& required_table(const toml::table& table, const char* key) const;

  // The tables, each under its own [[key]]; none where there is no such key.
  [[nodiscard]] std::vector<const toml::table*> tables(const toml::table& table,
                                                       const char* key) const;

  // An integer from `least` to `most`; `key` is where it was found.
  [[nodiscard]] Index integer(const toml::node& node,
                              const char* key,
                              Index least,
                              Index most) const;

  // Values of keys that must be there.
  [[nodiscard]] Index integer(const toml::table& table,
                              const char* key,
                              Index least,
                              Index most) const;
  [[nodiscard]] double rate(const toml::table& table, const char* key) const;  // 1e-18 to 1e18, inf
  [[nodiscard]] double seconds(const toml::table& table, const char* key) const;  // 0 to 1e9
  [[nodiscard]] double positive_seconds(const toml::table& table, const char* key) const;
  // 0 to `most`.
  [[nodiscard]] double number_up_to(const toml::node& node, const char* key, double most) const;
  [[nodiscard]] bool flag(const toml::table& table, const char* key) const;  // true or false
  [[nodiscard]] std::string text(const toml::node& node, const char* key) const;

 private:
  [[nodiscard]] double number(const toml::node& node, const char* key) const;
  [[nodiscard]] bool begins_with_key(std::string_view text) const;
  void check_keys(const toml::table& table, const std::vector<std::string_view>& known) const;

  std::string name_;
  std::string what_;
  std::vector<std::string_view> keys_;
};

// A text between quotes, as TOML wants it.
[[nodiscard]] std::string toml_quoted(std::string_view text);

}  // namespace tessera
