// The class of a picture from its path, as Darknet's data sets have it: a label in the file's name
// or in the name of a folder it lies in.
//
// A label counts where it stands as a whole word: before it and behind it is neither a letter nor a
// digit, so "rain" is not in "train". Letters are also all bytes beyond ASCII. A label that is part
// of a longer one that was found does not count: "retriever" beside "golden_retriever".
//
// In the file's name a number may touch the label: "cat01.png", "7cat.png". The label's end that it
// touches must be a letter, the number must be all that is left of the word ("cat01b" has no cat),
// a label of one ASCII letter does not count so ("c5"), nor one that is another label without its
// number ("class" beside "class1").
//
// 1. The file's name, without its ending, is looked at first, then the folder it lies in, then the
//    one above, and so on. The first of them that holds a label decides.
// 2. Two labels in the one that decides: the class is open.
// 3. A label in the file's name and only others in its folder: the class is open, unless the one in
//    the name is the longer one and more than a number ("cat/catfish.png").
// 4. A label in the file's name that a number touches, and only others in the nearest folder that
//    holds any: the class is open.

#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace tessera::engine {

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
  struct Match {
    int label = 0;
    bool numbered = false;  // nowhere in the name a whole word: a number touches it
  };
  // All labels that the name of a file or folder holds, but those within longer ones.
  [[nodiscard]] std::vector<Match> labels_in(std::string_view name, bool may_be_numbered) const;
  // The folders are given from the outermost.
  // `mine` is the only label in the file's name.
  [[nodiscard]] Found find_in_file(const Match& mine,
                                   std::span<const std::string_view> folders) const;
  [[nodiscard]] Found find_in_folders(std::span<const std::string_view> folders) const;
  [[nodiscard]] Found conflict(int one, int other, const char* where) const;
  [[nodiscard]] std::string quoted(int label) const;
  [[nodiscard]] const std::string& text_of(const Match& match) const;

  std::vector<std::string> labels_;
  std::unordered_map<std::string_view, int> classes_;  // views of labels_
  std::unordered_set<std::string_view> unnumbered_;    // what no number may touch
  std::vector<bool> lengths_;                          // whether a label has this many bytes
};

}  // namespace tessera::engine
