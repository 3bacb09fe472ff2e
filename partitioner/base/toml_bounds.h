// Bounds on a text of TOML before it is parsed: toml++ recurses for each part of a dotted key and
// for each bracket, and takes some hundred bytes of memory for each value.

#pragma once

#include <string>
#include <string_view>

namespace tessera {

// Throws InputError, with `name` as the file and the line, where brackets or keys nest deeper than
// a profile or partition ever does, or where there are too many values.
void expect_bounded_toml(std::string_view text, const std::string& name);

}  // namespace tessera
