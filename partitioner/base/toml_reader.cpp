#include "partitioner/base/toml_reader.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <vector>

#include "partitioner/base/errors.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/spelling.h"
#include "partitioner/base/toml_bounds.h"

namespace tessera {

namespace {

constexpr double kLeastRate = 1e-18;  // so that no time is infinite, nor a sum of them
constexpr double kMostRate = 1e18;
constexpr double kLeastSeconds = 1e-18;
constexpr double kMostSeconds = 1e9;

int line_of(const toml::source_region& source) {
  return static_cast<int>(source.begin.line);
}

// The line that begins at `begin`, where it is not blank or a comment; and where the next begins.
std::string_view next_line(std::string_view text, std::size_t& begin) {
  const std::size_t end = std::min(text.find('\n', begin), text.size());
  std::string_view line = text.substr(begin, end - begin);
  begin = end + 1;
  line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
  return line.substr(0, line.find('#'));
}

}  // namespace

// Nearly one of the keys will do: then it is this kind of file with a mistake in it.
bool TomlReader::begins_with_key(std::string_view text) const {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  std::size_t begin = text.substr(0, 3) == kByteOrderMark ? 3 : 0;
  std::string_view line;
  while (line.empty() && begin < text.size()) {
    line = next_line(text, begin);
  }
  line.remove_prefix(std::min(line.find_first_not_of("[ \t"), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(" \t=]."));
  return line.empty() || !nearest_word(word, keys_).empty();
}

toml::table TomlReader::parse(const std::string& text) const {
  const bool known = begins_with_key(text);
  const std::string expected =
      fmt::format("expected {}, which begins with one of: {}", what_, fmt::join(keys_, ", "));
  expect_bounded_toml(text, name_);
  try {
    toml::table table = toml::parse(std::string_view(text));
    if (!known) {
      throw InputError(name_, 0, "has unknown keys: " + expected);
    }
    check_keys(table, keys_);
    return table;
  } catch (const toml::parse_error& error) {
    throw InputError(
        name_,
        line_of(error.source()),
        "this is not TOML: " + (known ? printable_start(error.description(), 200) : expected));
  }
}

void TomlReader::fail(const toml::node& node, const std::string& message) const {
  throw InputError(name_, line_of(node.source()), message);
}

void TomlReader::check_keys(const toml::table& table,
                            std::initializer_list<std::string_view> known) const {
  check_keys(table, std::vector<std::string_view>(known));
}

void TomlReader::check_keys(const toml::table& table,
                            const std::vector<std::string_view>& known) const {
  for (const auto& [key, node] : table) {
    if (std::find(known.begin(), known.end(), key.str()) == known.end()) {
      throw InputError(name_,
                       line_of(key.source()),
                       fmt::format("unknown key `{}`, expected one of: {}{}",
                                   printable_start(key.str()),
                                   fmt::join(known, ", "),
                                   suggestion(key.str(), known)));
    }
  }
}

const toml::table& TomlReader::required_table(const toml::table& table, const char* key) const {
  const toml::node* node = table.get(key);
  if (node == nullptr) {
    fail(table, fmt::format("`{0}` is missing: add a table [{0}]", key));
  }
  if (!node->is_table()) {
    fail(*node, fmt::format("`{0}` is not a table: write it under [{0}]", key));
  }
  return *node->as_table();
}

const toml::node& TomlReader::required(const toml::table& table, const char* key) const {
  const toml::node* node = table.get(key);
  if (node == nullptr) {
    fail(table, fmt::format("`{}` is missing: add a line `{} = ...`", key, key));
  }
  return *node;
}

std::vector<const toml::table*> TomlReader::tables(const toml::table& table,
                                                   const char* key) const {
  std::vector<const toml::table*> result;
  const toml::node* node = table.get(key);
  if (node == nullptr) {
    return result;
  }
  const bool is_empty = node->is_array() && node->as_array()->empty();
  if (!is_empty && !node->is_array_of_tables()) {
    fail(*node,
         fmt::format("`{0}` is not a list of tables: write each under its own [[{0}]]", key));
  }
  for (const toml::node& item : *node->as_array()) {
    result.push_back(item.as_table());
  }
  return result;
}

Index TomlReader::integer(const toml::node& node, const char* key, Index least, Index most) const {
  if (!node.is_integer()) {
    fail(node, fmt::format("`{}` is not an integer", key));
  }
  const Index value = node.as_integer()->get();
  if (value < least || value > most) {
    fail(node, fmt::format("`{}` is {}, expected {} to {}", key, value, least, most));
  }
  return value;
}

Index TomlReader::integer(const toml::table& table,
                          const char* key,
                          Index least,
                          Index most) const {
  return integer(required(table, key), key, least, most);
}

double TomlReader::number(const toml::node& node, const char* key) const {
  if (node.is_integer()) {
    return static_cast<double>(node.as_integer()->get());
  }
  if (!node.is_floating_point()) {
    fail(node, fmt::format("`{}` is not a number", key));
  }
  return node.as_floating_point()->get();
}

double TomlReader::rate(const toml::table& table, const char* key) const {
  const toml::node& node = required(table, key);
  const double value = number(node, key);
  if (!(value >= kLeastRate) || (value > kMostRate && !std::isinf(value))) {
    fail(node,
         fmt::format("`{}` is {}, expected {} or more, at most {:.0e} or inf",
                     key,
                     value,
                     kLeastRate,
                     kMostRate));
  }
  return value;
}

double TomlReader::seconds(const toml::table& table, const char* key) const {
  const toml::node& node = required(table, key);
  const double value = number(node, key);
  if (!(value >= 0 && value <= kMostSeconds)) {
    fail(node,
         fmt::format("`{}` is {}, expected 0 or more, at most {:.0e}", key, value, kMostSeconds));
  }
  return value;
}

double TomlReader::positive_seconds(const toml::table& table, const char* key) const {
  const double value = seconds(table, key);
  if (value < kLeastSeconds) {
    fail(*table.get(key),
         fmt::format("`{}` is {}, expected {} or more", key, value, kLeastSeconds));
  }
  return value;
}

double TomlReader::number_up_to(const toml::node& node, const char* key, double most) const {
  const double value = number(node, key);
  if (!(value >= 0 && value <= most)) {
    fail(node, fmt::format("`{}` is {}, expected 0 to {}", key, value, most));
  }
  return value;
}

bool TomlReader::flag(const toml::table& table, const char* key) const {
  const toml::node& node = required(table, key);
  if (!node.is_boolean()) {
    fail(node, fmt::format("`{}` is not true or false", key));
  }
  return node.as_boolean()->get();
}

std::string TomlReader::text(const toml::node& node, const char* key) const {
  if (!node.is_string()) {
    fail(node, fmt::format("`{}` is not a string: write it in quotes", key));
  }
  return node.as_string()->get();
}

std::string toml_quoted(std::string_view text) {
  std::string result = "\"";
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    if (code < 0x20 || code == 0x7f) {
      result += fmt::format("\\u{:04x}", code);
    } else if (letter == '"' || letter == '\\') {
      result += '\\';
      result += letter;
    } else {
      result += letter;
    }
  }
  return result + '"';
}

}  // namespace tessera
