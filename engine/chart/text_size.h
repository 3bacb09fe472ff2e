// How much room a text takes in a drawing. The reader's browser chooses the font, so these are
// estimates on the safe side, of the wider ones of usual fonts.

#pragma once

#include <string>
#include <string_view>

namespace tessera::engine {

// Pixels of a drawing that its text is high at most: on narrow screens and on paper, where drawings
// are reduced (see style.cpp). Drawings leave room for it everywhere.
inline constexpr double kLargestText = 13;

// Of `text` as it is printed, in pixels of a drawing, with letters of `size`.
[[nodiscard]] double drawn_width(std::string_view text, double size = kLargestText);

// The text as it is printed, or as much of it as fits into `width` with an ellipsis after it.
[[nodiscard]] std::string fitted(std::string_view text, double width, double size = kLargestText);

}  // namespace tessera::engine
