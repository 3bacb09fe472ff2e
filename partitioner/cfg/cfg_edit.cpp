#include "partitioner/cfg/cfg_edit.h"

#include <algorithm>
#include <string_view>

#include "partitioner/base/number_text.h"

namespace tessera::partitioner {

namespace {

std::string_view without_comment(std::string_view line) {
  return line.substr(0, line.find_first_of("#;"));
}

std::string_view key_in(std::string_view line) {
  const std::string_view entry = without_comment(line);
  const std::size_t equals = entry.find('=');
  return equals == std::string_view::npos ? std::string_view() : trimmed(entry.substr(0, equals));
}

// The line with another value, and what stands before and behind that as it was.
std::string with_value(std::string_view line, const CfgChange& change) {
  if (change.value.empty()) {
    return "# " + std::string(line);
  }
  const std::string_view value = trimmed(without_comment(line).substr(line.find('=') + 1));
  const auto begin = static_cast<std::size_t>(value.data() - line.data());
  return std::string(line.substr(0, begin)) + change.value +
         std::string(line.substr(begin + value.size()));
}

}  // namespace

std::string with_changes(const std::string& text, const std::vector<CfgChange>& changes) {
  std::vector<CfgChange> left = changes;
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  std::string changed(text.starts_with(kByteOrderMark) ? kByteOrderMark : std::string_view());
  std::string_view rest = std::string_view(text).substr(changed.size());
  int section = 0;
  std::size_t header_end = 0;  // in `changed`
  std::string_view line_end = "\n";
  const auto add_missing = [&] {
    for (auto change = left.rbegin(); change != left.rend(); ++change) {
      if (change->section_line == section && !change->value.empty()) {
        if (!changed.substr(0, header_end).ends_with(line_end)) {  // the file ends without one
          changed.insert(header_end, line_end);
          header_end += line_end.size();
        }
        changed.insert(header_end, change->key + '=' + change->value + std::string(line_end));
      }
    }
  };
  for (int number = 1; !rest.empty(); ++number) {
    const std::size_t end = std::min(rest.find_first_of("\r\n"), rest.size());
    const std::size_t next = rest.substr(end, 2) == "\r\n" ? end + 2 : end + 1;
    const std::string_view line = rest.substr(0, end);
    if (next <= rest.size()) {
      line_end = rest.substr(end, next - end);
    }
    if (trimmed(without_comment(line)).starts_with('[')) {
      add_missing();
      section = number;
    }
    const std::string_view key = key_in(line);
    const auto change = std::find_if(left.begin(), left.end(), [&](const CfgChange& each) {
      return each.section_line == section && each.key == key;
    });
    if (change != left.end()) {
      changed += with_value(line, *change);
      left.erase(change);
    } else {
      changed += line;
    }
    changed += next <= rest.size() ? rest.substr(end, next - end) : std::string_view();
    if (section == number) {
      header_end = changed.size();
    }
    rest.remove_prefix(std::min(next, rest.size()));
  }
  add_missing();
  return changed;
}

}  // namespace tessera::partitioner
