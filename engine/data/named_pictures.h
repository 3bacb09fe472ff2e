// Pictures without labels, as they are named on a command line: any number of pictures, IDX files,
// text files that list pictures, and folders, whose pictures count with those of all folders below,
// sorted by path. A name that leads to no picture does not keep the others from being opened.

#pragma once

#include <string>
#include <vector>

#include "engine/data/dataset.h"

namespace tessera::engine {

struct NamedPictures {
  std::vector<Dataset> sets;  // in the order in which they were named; none is empty
  // What is wrong with a name, or with one in a named folder; starts with the path.
  std::vector<std::string> problems;
  // What is not looked at in a folder: links to folders, pictures that cannot be read.
  std::vector<std::string> left_out;

  [[nodiscard]] Index size() const;  // pictures of all sets, read or not
};

// Pictures that are files of their own become one set, up to the next IDX file.
[[nodiscard]] NamedPictures open_named_pictures(const std::vector<std::string>& names,
                                                Index channels);

}  // namespace tessera::engine
