// The laws of a data set that holds its pictures, whatever it was read from.

#pragma once

#include <algorithm>

#include "tests/fuzz/harness.h"

#include "engine/data/dataset.h"

namespace tessera::tests {

inline void read_items(const engine::Dataset& data) {
  constexpr Index kMostItems = 3;
  law(data.size() > 0, "a data set has pictures");
  for (Index item = 0; item < std::min(data.size(), kMostItems); ++item) {
    const engine::Picture picture = data.read(item);
    law(static_cast<Index>(picture.bytes.size()) ==
            picture.held_rows * picture.held_cols * picture.held_channels,
        "a picture has as many values as its shape says");
    law(picture.shape.channels == data.channels(), "a picture has the channels asked for");
    law(data.label(item) < data.classes(), "a label is one of the classes");
  }
}

}  // namespace tessera::tests
