// Pictures of a list, each with the boxes of the label text that belongs to it.

#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "engine/data/sets/box_labels.h"
#include "engine/data/sets/picture_files.h"

namespace tessera::engine {

struct LabelRules {
  LabelLines lines = {};
  bool may_lack = false;  // nothing is on a picture without a label text; else it is a problem
};

struct LabelCounts {
  Index texts = 0;
  Index without = 0;          // pictures that are there, and no label text of them
  Index polygons = 0;         // lines
  std::string first_polygon;  // where the text with the first one is
  std::string first_without;  // picture
};

// Adds pictures to `files`, whose classes are known, and which has the same list, if any: those of
// which the boxes can be used, else problems.
LabelCounts add_labelled_pictures(const PictureFiles& listed,
                                  const LabelRules& rules,
                                  PictureFiles& files);

// A line of a list that is of no use. Only what looks like a path is repeated: a data set may name
// any file as its list.
[[nodiscard]] DataProblem unlabelled(const std::filesystem::path& list,
                                     int line,
                                     std::string_view path,
                                     const std::string& why);

}  // namespace tessera::engine
