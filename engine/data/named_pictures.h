// Pictures without labels, as they are named on a command line: any number of pictures, IDX files,
// text files that list pictures, and folders. A name that leads to no picture does not keep the
// others from being opened.

#pragma once

#include <string>
#include <vector>

#include "engine/data/dataset.h"

namespace engine {

struct NamedPictures {
  std::vector<Dataset> sets;          // in the order in which they were named; none is empty
  std::vector<std::string> problems;  // what is wrong with a name, starting with its path

  [[nodiscard]] Index size() const;  // pictures of all sets, read or not
};

// Pictures that are files of their own become one set, up to the next IDX file.
[[nodiscard]] NamedPictures open_named_pictures(const std::vector<std::string>& names,
                                                Index channels);

}  // namespace engine
