#include "partitioner/cfg/cfg_sections.h"

#include <algorithm>
#include <string_view>

#include "partitioner/base/errors.h"
#include "partitioner/base/number_text.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/utf8.h"

namespace tessera::partitioner {

namespace {

constexpr std::size_t kLongestLine = 65536;  // bytes
constexpr std::size_t kMostSections = 5001;  // [net] and 5000 layers: planning takes seconds
constexpr std::size_t kMostEntries = 1000;   // of one section

std::string quoted(std::string_view text) {
  return '\'' + printable_start(text) + '\'';
}

// Before [net] nothing is quoted: this may be anybody's file.
[[noreturn]] void refuse_kind(const std::string& name, int number) {
  throw InputError(name, number, "this is not a Darknet model file: it has to start with [net]");
}

void require_no_utf16(std::string_view text, const std::string& name) {
  const std::string_view start = text.substr(0, 2);
  const bool marked = start == "\xFF\xFE" || start == "\xFE\xFF";
  const bool zeros = text.size() >= 4 && ((text[1] == 0 && text[3] == 0 && text[0] != 0) ||
                                          (text[0] == 0 && text[2] == 0 && text[1] != 0));
  if (marked || zeros) {
    throw InputError(name, 0, "this is UTF-16 text: save the model file as UTF-8");
  }
}

void require_text(std::string_view line, const std::string& name, int number) {
  if (line.size() > kLongestLine) {
    throw InputError(name,
                     number,
                     "a line of " + std::to_string(line.size()) +
                         " bytes; a model file has short lines: is this a model file?");
  }
  for (std::string_view rest = line; !rest.empty();) {
    const std::size_t length = rest.front() == 0 ? 0 : utf8_character_bytes(rest);
    if (length == 0) {
      throw InputError(name,
                       number,
                       "byte " + std::to_string(line.size() - rest.size() + 1) +
                           " of this line is not UTF-8 text: save the file as UTF-8, or is this "
                           "not a model file?");
    }
    rest.remove_prefix(length);
  }
}

std::string section_name(std::string_view line, const std::string& name, int number, bool first) {
  const std::size_t close = line.find(']');
  if (first && close != line.size() - 1) {
    refuse_kind(name, number);
  }
  if (close != line.size() - 1) {
    throw InputError(name, number, quoted(line) + " should be a section like [convolutional]");
  }
  return std::string(trimmed(line.substr(1, close - 1)));
}

CfgEntry entry(std::string_view line, const std::string& name, int number) {
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos) {
    throw InputError(name, number, quoted(line) + " is neither [section] nor key=value");
  }
  const std::string_view key = trimmed(line.substr(0, equals));
  const std::string_view value = trimmed(line.substr(equals + 1));
  if (key.empty() || value.empty()) {
    throw InputError(
        name,
        number,
        quoted(line) + " has no " + (key.empty() ? "key before" : "value after") + " its '='");
  }
  return {std::string(key), std::string(value), number};
}

// Takes the first line off a text, with its end: of Unix, of Windows, or of old Macs.
std::string_view take_line(std::string_view& rest) {
  const std::size_t end = std::min(rest.find_first_of("\r\n"), rest.size());
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end);
  rest.remove_prefix(rest.substr(0, 2) == "\r\n" ? 2 : std::min<std::size_t>(rest.size(), 1));
  return line;
}

void expect_few(const std::vector<CfgSection>& sections, const std::string& name, int number) {
  if (sections.size() > kMostSections) {
    throw InputError(name,
                     number,
                     "more than " + std::to_string(kMostSections - 1) +
                         " layers, the most that this program plans");
  }
  if (sections.back().entries.size() > kMostEntries) {
    throw InputError(
        name,
        number,
        "more than " + std::to_string(kMostEntries) + " keys in one section: is this a model?");
  }
}

}  // namespace

bool is_net(std::string_view section) {
  return section == "net" || section == "network";
}

std::vector<CfgSection> read_cfg_sections(const std::string& text, const std::string& name) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  std::string_view rest = text;
  require_no_utf16(rest, name);
  if (rest.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
    rest.remove_prefix(kByteOrderMark.size());
  }
  std::vector<CfgSection> sections;
  for (int number = 1; !rest.empty(); ++number) {
    std::string_view line = take_line(rest);
    require_text(line, name, number);
    line = trimmed(line.substr(0, line.find_first_of("#;")));
    if (line.empty()) {
      continue;
    }
    if (sections.empty() && line.front() != '[') {
      refuse_kind(name, number);
    }
    if (line.front() == '[') {
      sections.push_back({section_name(line, name, number, sections.empty()), number, {}});
      if (!is_net(sections.front().name)) {
        return sections;
      }
    } else {
      sections.back().entries.push_back(entry(line, name, number));
    }
    expect_few(sections, name, number);
  }
  if (sections.empty()) {
    throw InputError(name, 0, "no sections; a model file starts with [net]");
  }
  return sections;
}

}  // namespace tessera::partitioner
