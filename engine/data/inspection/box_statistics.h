// How large the objects of a data set are, in pixels of their pictures.

#pragma once

#include <array>
#include <string>

#include "engine/data/dataset.h"

namespace tessera::engine {

// Sides of squares of the same area, from which on an object belongs to the next size.
inline constexpr std::array<double, 8> kSideBounds{8, 16, 32, 64, 96, 128, 256, 512};

struct BoxStatistics {
  Index pictures = 0;
  Index empty_pictures = 0;  // without any object
  Index objects = 0;
  // COCO's: less than 32 x 32 pixels, up to 96 x 96, and larger.
  Index small = 0;
  Index medium = 0;
  Index large = 0;
  std::array<Index, kSideBounds.size() + 1> by_side{};  // finer
};

// Pictures whose headers cannot be read count without their objects.
[[nodiscard]] BoxStatistics statistics_of(const Dataset& dataset);

// "under 8", "8 to 16", ..., "512 and more".
[[nodiscard]] std::string side_name(std::size_t size);

}  // namespace tessera::engine
