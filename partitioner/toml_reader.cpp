#include "partitioner/toml_reader.h"

#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <vector>

#include "partitioner/errors.h"

namespace partitioner {

namespace {

constexpr double kLeastPositive = 1e-18;  // what is divided by less may become infinite

int line_of(const toml::source_region& source) {
  return static_cast<int>(source.begin.line);
}

}  // namespace

toml::table TomlReader::parse(const std::string& text) const {
  try {
    return toml::parse(std::string_view(text));
  } catch (const toml::parse_error& error) {
    throw InputError(
        name_, line_of(error.source()), fmt::format("this is not TOML: {}", error.description()));
  }
}

void TomlReader::fail(const toml::node& node, const std::string& message) const {
  throw InputError(name_, line_of(node.source()), message);
}

void TomlReader::check_keys(const toml::table& table,
                            std::initializer_list<std::string_view> known) const {
  for (const auto& [key, node] : table) {
    bool found = false;
    for (const std::string_view name : known) {
      found = found || key.str() == name;
    }
    if (!found) {
      throw InputError(
          name_,
          line_of(key.source()),
          fmt::format("unknown key `{}`, expected one of: {}", key.str(), fmt::join(known, ", ")));
    }
  }
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
    fail(node, fmt::format("`{}` is no whole number", key));
  }
  const Index value = node.as_integer()->get();
  if (value < least || value > most) {
    const std::string upper =
        most == std::numeric_limits<Index>::max() ? " or more" : fmt::format(" to {}", most);
    fail(node, fmt::format("`{}` is {}, expected {}{}", key, value, least, upper));
  }
  return value;
}

Index TomlReader::integer(const toml::table& table, const char* key, Index least) const {
  return integer(required(table, key), key, least, std::numeric_limits<Index>::max());
}

double TomlReader::number(const toml::node& node, const char* key) const {
  if (node.is_integer()) {
    return static_cast<double>(node.as_integer()->get());
  }
  if (!node.is_floating_point()) {
    fail(node, fmt::format("`{}` is no number", key));
  }
  return node.as_floating_point()->get();
}

double TomlReader::positive(const toml::table& table, const char* key) const {
  const toml::node& node = required(table, key);
  const double value = number(node, key);
  if (!(value >= kLeastPositive)) {
    fail(node, fmt::format("`{}` is {}, expected {} or more", key, value, kLeastPositive));
  }
  return value;
}

double TomlReader::not_negative(const toml::table& table, const char* key) const {
  const toml::node& node = required(table, key);
  const double value = number(node, key);
  if (!(value >= 0) || std::isinf(value)) {
    fail(node, fmt::format("`{}` is {}, expected 0 or more", key, value));
  }
  return value;
}

std::string TomlReader::text(const toml::node& node, const char* key) const {
  if (!node.is_string()) {
    fail(node, fmt::format("`{}` is no text: write it in quotes", key));
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

}  // namespace partitioner
