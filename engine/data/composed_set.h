// Pictures for object detection, composed of pictures of single things, for machines that hold no
// real ones: items of several sizes and colours, cut out of Fashion-MNIST, on cluttered grounds.
//
// Everything is drawn by position and computed in integers: the same seed gives the same pixels on
// every machine.

#pragma once

#include <cstdint>
#include <filesystem>

#include "engine/data/dataset.h"
#include "engine/drawing/rgb_picture.h"

namespace tessera::engine {

struct ComposedPicture {
  RgbPicture picture;
  std::vector<Box> boxes;
};

struct CompositionRules {
  Index rows = 160;
  Index cols = 160;
  std::uint64_t seed = 1;
};

// Number `number` of the pictures that are made of `items`, light things on black: one to six of
// them, 1/8 to 1/2 of the shorter side large. No item covers more than a quarter of another's box.
[[nodiscard]] ComposedPicture compose_picture(const Dataset& items,
                                              const CompositionRules& rules,
                                              Index number);

// Writes `training` and `testing` pictures into `folder`, which must not be there or be empty, with
// their labels, lists, names and detection.data: those for training are made of items for training,
// and so on. `source`: the folder of Fashion-MNIST, or of another IDX set.
void write_composed_set(const std::filesystem::path& folder,
                        const std::filesystem::path& source,
                        const CompositionRules& rules,
                        Index training,
                        Index testing);

}  // namespace tessera::engine
