// UTF-8 text, character by character (Unicode, table 3-7).

#pragma once

#include <cstddef>
#include <string_view>

namespace tessera {

// How many bytes the character takes that `text` starts with; 0 if it starts with none: where it is
// empty, not UTF-8, or cut off.
[[nodiscard]] std::size_t utf8_character_bytes(std::string_view text);

// The code point of a text that starts with such a character.
[[nodiscard]] char32_t utf8_code_point(std::string_view text);

// The first bytes of a text, `most` at most, without half a character at the end.
[[nodiscard]] std::string_view utf8_prefix(std::string_view text, std::size_t most);

}  // namespace tessera
