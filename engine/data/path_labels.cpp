#include "engine/data/path_labels.h"

#include <algorithm>
#include <fmt/format.h>

#include "partitioner/errors.h"
#include "partitioner/printable.h"

namespace engine {

using partitioner::InputError;

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

bool holds_word(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos;
       at = text.find(word, at + 1)) {
    if (is_boundary(text, at) && is_boundary(text, at + word.size())) {
      return true;
    }
  }
  return false;
}

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
    lengths_.resize(std::max(lengths_.size(), labels_[i].size() + 1));
    lengths_[labels_[i].size()] = true;
  }
}

std::string PathLabels::quoted(int label) const {
  return fmt::format("\"{}\"",
                     partitioner::printable_start(labels_[static_cast<std::size_t>(label)]));
}

std::vector<int> PathLabels::labels_in(std::string_view name) const {
  std::vector<std::size_t> boundaries;
  for (std::size_t at = 0; at <= name.size(); ++at) {
    if (is_boundary(name, at)) {
      boundaries.push_back(at);
    }
  }
  std::vector<int> all;
  for (auto begin = boundaries.begin(); begin != boundaries.end(); ++begin) {
    for (auto end = begin + 1; end != boundaries.end() && *end - *begin < lengths_.size(); ++end) {
      if (!lengths_[*end - *begin]) {
        continue;
      }
      const auto match = classes_.find(name.substr(*begin, *end - *begin));
      if (match != classes_.end() &&
          std::find(all.begin(), all.end(), match->second) == all.end()) {
        all.push_back(match->second);
      }
    }
  }
  std::vector<int> longest;
  for (const int label : all) {
    const std::string& text = labels_[static_cast<std::size_t>(label)];
    const bool within = std::any_of(all.begin(), all.end(), [&](int other) {
      return other != label && holds_word(labels_[static_cast<std::size_t>(other)], text);
    });
    if (!within) {
      longest.push_back(label);
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

PathLabels::Found PathLabels::find(std::string_view path) const {
  const std::vector<std::string_view> parts = parts_of(path);
  for (std::size_t i = parts.size(); i-- > 0;) {
    const bool is_file = i + 1 == parts.size();
    const std::vector<int> found = labels_in(is_file ? without_ending(parts[i]) : parts[i]);
    if (found.size() > 1) {
      return conflict(found[0],
                      found[1],
                      is_file ? "both in the file's name" : "both in the name of one folder");
    }
    if (found.empty()) {
      continue;
    }
    const std::vector<int> around = is_file && i > 0 ? labels_in(parts[i - 1]) : std::vector<int>();
    const std::string& mine = labels_[static_cast<std::size_t>(found[0])];
    const bool outvoted =
        std::find(around.begin(), around.end(), found[0]) == around.end() &&
        std::any_of(around.begin(), around.end(), [&](int other) {
          return is_number(mine) || labels_[static_cast<std::size_t>(other)].size() >= mine.size();
        });
    if (outvoted) {
      return conflict(found[0], around[0], "one in the file's name and one in its folder's");
    }
    return {found[0], ""};
  }
  return {-1,
          "its path holds none of the labels as a whole word, so its class is unknown: rename it, "
          "or complete the labels"};
}

}  // namespace engine
