// Text files come from many programs: with a byte-order mark, in UTF-16, with the line ends of
// Windows. Everything that reads lines reads UTF-8 without a mark.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tessera::engine {

// Drops a byte-order mark of UTF-8, and converts UTF-16 of either byte order: with a mark, or where
// every other byte of the first two letters is 0. Returns what is wrong where the bytes claim to be
// UTF-16 and are not. Other bytes stay as they are, whatever encoding they are in.
[[nodiscard]] std::optional<std::string> convert_to_utf8(std::vector<std::uint8_t>& bytes);

}  // namespace tessera::engine
