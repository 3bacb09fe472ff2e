// A sheet of some pictures of a data set with the boxes of their objects and the names of these,
// for people to look at.

#pragma once

#include <string>

#include "engine/data/dataset.h"
#include "engine/drawing/rgb_picture.h"

namespace tessera::engine {

struct SampleSheet {
  RgbPicture picture;
  std::string
      list;  // a line for each picture and box: the picture's place, the box's class, colour
};

// `most` pictures, evenly from the first to the last, five in a row. One that cannot be read is a
// dark field.
[[nodiscard]] SampleSheet sample_sheet(const Dataset& dataset, Index most = 25);

}  // namespace tessera::engine
