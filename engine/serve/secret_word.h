// A word that only those know who were given it.

#pragma once

#include <string>
#include <string_view>

namespace tessera::engine {

// 128 random bits of the system's, as 32 digits.
[[nodiscard]] std::string secret_word();

// Takes as long wherever two words of equal length differ.
[[nodiscard]] bool is_same_word(std::string_view one, std::string_view other);

}  // namespace tessera::engine
