#include "engine/data/sets/path_labels.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/data/text/unicode_names.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

namespace {

bool is_digit(char letter) {
  return letter >= '0' && letter <= '9';
}

bool belongs_to_word(char letter) {
  return is_digit(letter) || (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         static_cast<unsigned char>(letter) >= 0x80;
}

// Whether a label may begin or end between the bytes before and at `at`.
bool is_boundary(std::string_view text, std::size_t at) {
  return at == 0 || at == text.size() ||
         !(belongs_to_word(text[at - 1]) && belongs_to_word(text[at]));
}

bool is_letter(char letter) {
  return belongs_to_word(letter) && !is_digit(letter);
}

// Whether a number that is the beginning of a word ends at `at`, before a letter.
bool number_ends(std::string_view text, std::size_t at) {
  if (at == text.size() || !is_letter(text[at])) {
    return false;
  }
  std::size_t begin = at;
  while (begin > 0 && is_digit(text[begin - 1])) {
    --begin;
  }
  return begin < at && is_boundary(text, begin);
}

// Whether a number that is the end of a word begins at `at`, behind a letter.
bool number_begins(std::string_view text, std::size_t at) {
  if (at == 0 || !is_letter(text[at - 1])) {
    return false;
  }
  std::size_t end = at;
  while (end < text.size() && is_digit(text[end])) {
    ++end;
  }
  return at < end && is_boundary(text, end);
}

// Whether `text` holds `word` as a whole one, or one that numbers touch.
bool holds_word(std::string_view text, std::string_view word, bool may_be_numbered) {
  for (std::size_t at = text.find(word); at != std::string_view::npos;
       at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((is_boundary(text, at) || (may_be_numbered && number_ends(text, at))) &&
        (is_boundary(text, end) || (may_be_numbered && number_begins(text, end)))) {
      return true;
    }
  }
  return false;
}

std::string_view without_first_number(std::string_view text) {
  return text.substr(static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_digit) -
                                              text.begin()));
}

std::string_view without_last_number(std::string_view text) {
  while (!text.empty() && is_digit(text.back())) {
    text.remove_suffix(1);
  }
  return text;
}

// Where a label may begin, or end.
struct Edge {
  std::size_t at = 0;
  bool numbered = false;  // in the middle of a word, beside a number
};

bool is_number(std::string_view text) {
  return std::all_of(text.begin(), text.end(), is_digit);
}

// The folders and the file of a path, from the outermost.
std::vector<std::string_view> parts_of(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    if (end > 0) {
      parts.push_back(path.substr(0, end));
    }
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return parts;
}

std::string_view without_ending(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos || dot == 0 ? name : name.substr(0, dot);
}

}  // namespace

PathLabels::PathLabels(std::vector<std::string> labels, const std::filesystem::path& source)
    : labels_(std::move(labels)) {
  for (std::size_t i = 0; i < labels_.size(); ++i) {
    const auto [first, added] = classes_.emplace(labels_[i], static_cast<int>(i));
    if (!added) {
      throw InputError(source.string(),
                       0,
                       fmt::format("{} is the label of class {} and of class {}: labels must "
                                   "differ, since they are looked for in the pictures' paths",
                                   quoted(static_cast<int>(i)),
                                   first->second,
                                   i));
    }
    const std::string& text = labels_[i];
    if (text.size() == 1) {
      unnumbered_.insert(text);
    }
    for (const std::string_view part : {without_first_number(text),
                                        without_last_number(text),
                                        without_first_number(without_last_number(text))}) {
      if (part.size() < text.size()) {
        unnumbered_.insert(part);
      }
    }
    lengths_.resize(std::max(lengths_.size(), labels_[i].size() + 1));
    lengths_[labels_[i].size()] = true;
  }
}

const std::string& PathLabels::text_of(const Match& match) const {
  return labels_[static_cast<std::size_t>(match.label)];
}

std::string PathLabels::quoted(int label) const {
  return fmt::format("\"{}\"", printable_start(labels_[static_cast<std::size_t>(label)]));
}

std::vector<PathLabels::Match> PathLabels::labels_in(std::string_view name,
                                                     bool may_be_numbered) const {
  std::vector<Edge> begins;
  std::vector<Edge> ends;
  for (std::size_t at = 0; at <= name.size(); ++at) {
    if (is_boundary(name, at)) {
      begins.push_back({at, false});
      ends.push_back({at, false});
    } else if (may_be_numbered && number_ends(name, at)) {
      begins.push_back({at, true});
    } else if (may_be_numbered && number_begins(name, at)) {
      ends.push_back({at, true});
    }
  }
  std::vector<Match> all;
  auto first_end = ends.begin();
  for (const Edge& begin : begins) {
    while (first_end != ends.end() && first_end->at <= begin.at) {
      ++first_end;
    }
    for (auto end = first_end; end != ends.end() && end->at - begin.at < lengths_.size(); ++end) {
      if (!lengths_[end->at - begin.at]) {
        continue;
      }
      const bool numbered = begin.numbered || end->numbered;
      const auto match = classes_.find(name.substr(begin.at, end->at - begin.at));
      if (match == classes_.end() || (numbered && unnumbered_.count(match->first) > 0)) {
        continue;
      }
      const auto known = std::find_if(
          all.begin(), all.end(), [&](const Match& each) { return each.label == match->second; });
      if (known == all.end()) {
        all.push_back({match->second, numbered});
      } else {
        known->numbered = known->numbered && numbered;
      }
    }
  }
  std::vector<Match> longest;
  for (const Match& match : all) {
    const bool within = std::any_of(all.begin(), all.end(), [&](const Match& other) {
      return other.label != match.label &&
             holds_word(text_of(other), text_of(match), match.numbered);
    });
    if (!within) {
      longest.push_back(match);
    }
  }
  return longest;
}

PathLabels::Found PathLabels::conflict(int one, int other, const char* where) const {
  return {-1,
          fmt::format("its path holds the labels {} and {}, {}, so its class is open: rename it so "
                      "that only one is left",
                      quoted(one),
                      quoted(other),
                      where)};
}

PathLabels::Found PathLabels::find_in_folders(std::span<const std::string_view> folders) const {
  for (std::size_t i = folders.size(); i-- > 0;) {
    const std::vector<Match> found = labels_in(folders[i], false);
    if (found.size() > 1) {
      return conflict(found[0].label, found[1].label, "both in the name of one folder");
    }
    if (!found.empty()) {
      return {found[0].label, ""};
    }
  }
  return {-1,
          "its path holds none of the labels as a whole word, so its class is unknown: rename it, "
          "or complete the labels"};
}

PathLabels::Found PathLabels::find_in_file(const Match& mine,
                                           std::span<const std::string_view> folders) const {
  std::vector<Match> around;
  for (std::size_t i = folders.size(); i-- > 0 && around.empty();) {
    if (mine.numbered || i + 1 == folders.size()) {
      around = labels_in(folders[i], false);
    }
  }
  const bool agreed = std::any_of(
      around.begin(), around.end(), [&](const Match& other) { return other.label == mine.label; });
  const bool outvoted = std::any_of(around.begin(), around.end(), [&](const Match& other) {
    return mine.numbered || is_number(text_of(mine)) ||
           text_of(other).size() >= text_of(mine).size();
  });
  if (outvoted && !agreed) {
    return conflict(mine.label,
                    around[0].label,
                    "one in the file's name and one in the name of a folder it is in");
  }
  return {mine.label, ""};
}

PathLabels::Found PathLabels::find(std::string_view path_as_written) const {
  const std::string path = composed(path_as_written);
  const std::vector<std::string_view> parts = parts_of(path);
  const auto folders = std::span(parts).first(parts.empty() ? 0 : parts.size() - 1);
  const std::vector<Match> found =
      parts.empty() ? std::vector<Match>() : labels_in(without_ending(parts.back()), true);
  if (found.size() > 1) {
    return conflict(found[0].label, found[1].label, "both in the file's name");
  }
  return found.empty() ? find_in_folders(folders) : find_in_file(found[0], folders);
}

}  // namespace tessera::engine
