// Words of commands that a person is to paste, or that another machine runs.

#pragma once

#include <string>

namespace tessera {

// A word as a shell takes it: in quotes where it has to be.
[[nodiscard]] std::string shell_word(const std::string& word);

}  // namespace tessera
