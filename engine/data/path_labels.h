// The class of a picture from its path, as Darknet's data sets have it: a label in the file's name
// or in the name of a folder it lies in.
//
// A label counts where it stands as a whole word: before it and behind it is neither a letter nor a
// digit, so "rain" is not in "train". Letters are also all bytes beyond ASCII. A label that is part
// of a longer one that was found does not count: "retriever" beside "golden_retriever".
//
// 1. The file's name, without its ending, is looked at first, then the folder it lies in, then the
//    one above, and so on. The first of them that holds a label decides.
// 2. Two labels in the one that decides: the class is open.
// 3. A label in the file's name and only others in its folder: the class is open, unless the one in
//    the name is the longer one and more than a number ("cat/catfish.png").

#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace engine {

class PathLabels {
 public:
  // Throws InputError at `source`, the file of labels, where two classes have the same label.
  PathLabels(std::vector<std::string> labels, const std::filesystem::path& source);
  PathLabels(const PathLabels&) = delete;
  PathLabels& operator=(const PathLabels&) = delete;

  struct Found {
    int label = -1;       // -1: none, or more than one
    std::string problem;  // then why, and what to do
  };
  [[nodiscard]] Found find(std::string_view path) const;

 private:
  // All labels that the name of a file or folder holds, but those within longer ones.
  [[nodiscard]] std::vector<int> labels_in(std::string_view name) const;
  [[nodiscard]] Found conflict(int one, int other, const char* where) const;
  [[nodiscard]] std::string quoted(int label) const;

  std::vector<std::string> labels_;
  std::unordered_map<std::string_view, int> classes_;  // views of labels_
  std::vector<bool> lengths_;                          // whether a label has this many bytes
};

}  // namespace engine
