// Numbers that meters write as text.

#pragma once

#include <optional>
#include <string_view>

namespace tessera::engine {

// All of the text, spaces around it apart, as a finite number; nothing where it is none.
[[nodiscard]] std::optional<double> number_in(std::string_view text);

}  // namespace tessera::engine
