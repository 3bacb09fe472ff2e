// One name, one spelling: an "é" may be one letter, or an "e" with an accent after it, as file
// systems of Macs write it. Both look alike, and are the same name.

#pragma once

#include <string>
#include <string_view>

namespace tessera::engine {

// The name with composed letters (NFC of Unicode); what is no UTF-8 stays as it is.
[[nodiscard]] std::string composed(std::string_view name);

}  // namespace tessera::engine
