// The name of this machine.

#pragma once

#include <string>

namespace engine {

[[nodiscard]] std::string host_name();

}  // namespace engine
