// Which program this is.

#pragma once

#include <string>

namespace tessera::engine {

// "tessera 0.1.0".
[[nodiscard]] std::string program_version();

// The same with a fingerprint of the sources that it was made from: alike on machines of different
// kinds, and different after any change.
[[nodiscard]] std::string program_sources();

}  // namespace tessera::engine
