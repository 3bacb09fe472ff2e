// Text and numbers as they stand in HTML and SVG.

#pragma once

#include <string>
#include <string_view>

namespace tessera::engine {

// Fit for the text of an element and for an attribute's value in double quotes, whatever the bytes
// are: first made printable, then &, <, >, " and ' as entities.
[[nodiscard]] std::string escaped(std::string_view text);

// A coordinate: with at most one decimal, "0" for what is no number.
[[nodiscard]] std::string coordinate(double value);

}  // namespace tessera::engine
