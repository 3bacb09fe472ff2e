// The name of this machine.

#pragma once

#include <string>

namespace tessera::engine {

[[nodiscard]] std::string host_name();

}  // namespace tessera::engine
