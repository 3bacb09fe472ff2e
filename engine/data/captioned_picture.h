// A picture with a line of text in a bar below it, as a PNG file for people to look at.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/data/picture.h"

namespace tessera::engine {

// A picture held with so many pixels is as good as one with more.
inline constexpr Detail kDrawnDetail{1024, 1024};

// The bytes of a PNG file, (R, G, B) of 8 bits. Small pictures are enlarged and large ones reduced,
// each by an integer, to at most 1024 pixels a side. The caption is shown in ASCII: every other
// character becomes a question mark, and a long one is cut.
[[nodiscard]] std::vector<std::byte> captioned_png(const Picture& picture,
                                                   const std::string& caption);

}  // namespace tessera::engine
