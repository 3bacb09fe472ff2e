#include "partitioner/cfg_sections.h"

#include <algorithm>
#include <string_view>

#include "partitioner/errors.h"

namespace partitioner {

namespace {

constexpr std::size_t kLongestLine = 65536;    // bytes
constexpr std::size_t kMostSections = 100000;  // a network of a thousand layers is already large
constexpr std::size_t kMostShown = 60;         // bytes of a faulty line in a message

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\v\f";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) {
    return {};
  }
  return text.substr(begin, text.find_last_not_of(kBlank) + 1 - begin);
}

std::string quoted(std::string_view text) {
  const bool whole = text.size() <= kMostShown;
  return '\'' + std::string(text.substr(0, kMostShown)) + (whole ? "'" : "...'");
}

// The length of the UTF-8 character that `text` starts with, 0 if it starts with none (Unicode,
// table 3-7).
std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) {
    return lead == 0 ? 0 : 1;
  }
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4) {
    return 0;
  }
  // The second byte rules out longer spellings of shorter characters, surrogates, and what lies
  // beyond Unicode.
  const unsigned least = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned most = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (byte(1) < least || byte(1) > most) {
    return 0;
  }
  for (std::size_t i = 2; i < length; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xBF) {
      return 0;
    }
  }
  return length;
}

void require_text(std::string_view line, const std::string& name, int number) {
  if (line.size() > kLongestLine) {
    throw InputError(name,
                     number,
                     "a line of " + std::to_string(line.size()) +
                         " bytes; a model file has short lines: is this one?");
  }
  for (std::string_view rest = line; !rest.empty();) {
    const std::size_t length = character_length(rest);
    if (length == 0) {
      throw InputError(name,
                       number,
                       "byte " + std::to_string(line.size() - rest.size() + 1) +
                           " of this line is not UTF-8 text: save the file as UTF-8, or is this "
                           "no model file?");
    }
    rest.remove_prefix(length);
  }
}

std::string section_name(std::string_view line, const std::string& name, int number) {
  const std::size_t close = line.find(']');
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

}  // namespace

std::vector<CfgSection> read_cfg_sections(const std::string& text, const std::string& name) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  std::string_view rest = text;
  if (rest.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
    rest.remove_prefix(kByteOrderMark.size());
  }
  std::vector<CfgSection> sections;
  for (int number = 1; !rest.empty(); ++number) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    require_text(line, name, number);
    line = trimmed(line.substr(0, line.find_first_of("#;")));
    if (line.empty()) {
      continue;
    }
    if (line.front() == '[') {
      sections.push_back({section_name(line, name, number), number, {}});
    } else if (sections.empty()) {
      throw InputError(name, number, quoted(line) + " comes before the first section, [net]");
    } else {
      sections.back().entries.push_back(entry(line, name, number));
    }
    if (sections.size() > kMostSections) {
      throw InputError(
          name,
          number,
          "more than " + std::to_string(kMostSections) + " sections: is this a model?");
    }
  }
  return sections;
}

}  // namespace partitioner
