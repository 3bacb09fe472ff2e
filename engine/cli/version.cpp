#include "engine/cli/version.h"

#include <fmt/format.h>

#include "engine/cli/source_fingerprint.h"

namespace tessera::engine {

std::string program_version() {
  return fmt::format("tessera {}", kVersion);
}

std::string program_sources() {
  return fmt::format("{} (sources {})", program_version(), kSourceFingerprint);
}

}  // namespace tessera::engine
