// What a file of weights says about itself.

#pragma once

#include <filesystem>
#include <string>

#include "engine/comm/communicator.h"

namespace tessera::engine {

// The metadata of a safetensors file under a key, read by rank 0, on all ranks; empty where there
// is none, or the file is a Darknet file, which has none. All ranks call this together; errors are
// AgreedErrors.
[[nodiscard]] std::string stored_metadata(const std::filesystem::path& path,
                                          const char* key,
                                          const Communicator& communicator);

}  // namespace tessera::engine
