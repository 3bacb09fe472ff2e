// The rule of engine/data/sets/path_labels.h once more, as plainly as it can be said: every label
// is tried at every place of every name.

#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace tessera::tests::naive_labels {

using Texts = std::vector<std::string>;

enum class Kind { Other, Digit, Letter };

inline Kind kind_of(char byte) {
  const auto code = static_cast<unsigned char>(byte);
  if (code >= '0' && code <= '9') {
    return Kind::Digit;
  }
  const bool letter = (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z') || code >= 128;
  return letter ? Kind::Letter : Kind::Other;
}

// How a label stands in a name, the better the later.
enum class Standing { Nowhere, Numbered, Whole };

// `rest` is what lies beyond the label's end `end`, the nearest byte first.
inline Standing standing_at_end(char end, const std::string& rest) {
  if (rest.empty() || kind_of(end) == Kind::Other || kind_of(rest[0]) == Kind::Other) {
    return Standing::Whole;
  }
  for (const char byte : rest) {
    if (kind_of(byte) == Kind::Other) {
      break;
    }
    if (kind_of(byte) == Kind::Letter) {
      return Standing::Nowhere;
    }
  }
  return kind_of(end) == Kind::Letter ? Standing::Numbered : Standing::Nowhere;
}

inline Standing standing(const std::string& name, const std::string& label) {
  Standing best = Standing::Nowhere;
  for (std::size_t at = 0; at + label.size() <= name.size(); ++at) {
    if (name.substr(at, label.size()) != label) {
      continue;
    }
    const std::string before(name.rend() - static_cast<std::ptrdiff_t>(at), name.rend());
    const std::string behind = name.substr(at + label.size());
    best = std::max(
        best,
        std::min(standing_at_end(label.front(), before), standing_at_end(label.back(), behind)));
  }
  return best;
}

inline bool only_digits(const std::string& text) {
  return std::all_of(
      text.begin(), text.end(), [](char byte) { return kind_of(byte) == Kind::Digit; });
}

// Whether `other` is the label with a number at one end or both.
inline bool is_with_number(const std::string& other, const std::string& label) {
  const std::size_t at = other.find(label);
  if (other.size() == label.size() || at == std::string::npos) {
    return false;
  }
  const std::string before = other.substr(0, at);
  const std::string behind = other.substr(at + label.size());
  return only_digits(before) && only_digits(behind) && standing(other, label) == Standing::Numbered;
}

inline bool may_be_numbered(const std::string& label, const Texts& labels) {
  return label.size() > 1 && std::none_of(labels.begin(), labels.end(), [&](const auto& other) {
           return is_with_number(other, label);
         });
}

// Of the labels that a name holds, the numbers; empty: none.
inline std::vector<int> found_in(const std::string& name, const Texts& labels, bool is_file) {
  std::vector<Standing> standings;
  for (const std::string& label : labels) {
    Standing own = standing(name, label);
    if (own == Standing::Numbered && !(is_file && may_be_numbered(label, labels))) {
      own = Standing::Nowhere;
    }
    standings.push_back(own);
  }
  std::vector<int> found;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    bool within = false;
    for (std::size_t j = 0; j < labels.size(); ++j) {
      within = within || (i != j && standings[j] != Standing::Nowhere &&
                          standing(labels[j], labels[i]) >= standings[i]);
    }
    if (standings[i] != Standing::Nowhere && !within) {
      found.push_back(static_cast<int>(i));
    }
  }
  return found;
}

// The class of a picture; -1: none, or open. Labels differ and none is empty.
inline int class_of(const std::string& path, const Texts& labels) {
  Texts names(1);  // of folders, then of the file
  for (const char byte : path) {
    if (byte == '/') {
      names.emplace_back();
    } else {
      names.back() += byte;
    }
  }
  names.erase(std::remove(names.begin(), names.end(), ""), names.end());
  if (names.empty()) {
    return -1;
  }
  std::string file = names.back();
  names.pop_back();
  if (file.rfind('.') != std::string::npos && file.rfind('.') > 0) {
    file.erase(file.rfind('.'));
  }

  const std::vector<int> in_file = found_in(file, labels, true);
  std::vector<int> in_parent;
  std::vector<int> in_nearest;  // of the folders that hold any
  for (const std::string& name : names) {
    in_parent = found_in(name, labels, false);
    in_nearest = in_parent.empty() ? in_nearest : in_parent;
  }
  if (in_file.empty()) {
    return in_nearest.size() == 1 ? in_nearest[0] : -1;
  }
  if (in_file.size() > 1) {
    return -1;
  }
  const int mine = in_file[0];
  const auto text = [&](int label) { return labels[static_cast<std::size_t>(label)]; };
  const bool whole = standing(file, text(mine)) == Standing::Whole;
  const std::vector<int>& competitors = whole ? in_parent : in_nearest;
  if (competitors.empty() || std::count(competitors.begin(), competitors.end(), mine) > 0) {
    return mine;
  }
  const bool longest = std::all_of(competitors.begin(), competitors.end(), [&](int competitor) {
    return text(competitor).size() < text(mine).size();
  });
  return whole && longest && !only_digits(text(mine)) ? mine : -1;
}

}  // namespace tessera::tests::naive_labels
