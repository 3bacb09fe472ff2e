// Which ranks are on the same device, as far as the state that they keep is concerned: they see the
// same folder in its memory. Names of hosts need not differ.

#pragma once

#include <filesystem>
#include <string>

namespace tessera::engine {

// The same text for all processes of a device that see the same folder, as long as it runs.
[[nodiscard]] std::string device_name(const std::filesystem::path& folder);

}  // namespace tessera::engine
