// Text from files, file names and the command line, made fit for a terminal: nothing in it moves
// the cursor, changes colours or the direction of writing, or starts a line.
//
// Twice is as good as once: what is printable comes back as it is. Backslashes are kept, so the
// original cannot be told from the result; this is for people to read.

#pragma once

#include <string>
#include <string_view>

namespace tessera {

// Control characters and bytes that are not UTF-8 as \x1b, characters that reorder or hide text
// (bidirectional overrides, line separators, invisible marks) as \u202e; all else as it is.
[[nodiscard]] std::string printable(std::string_view text);

// The same of at most `most_bytes` of the text, with "..." where some of it was left out.
[[nodiscard]] std::string printable_start(std::string_view text, std::size_t most_bytes = 60);

}  // namespace tessera
