// What a checkpoint says beside its tensors: written and read by checkpoint.cpp, which alone
// includes this. See checkpoint.h for what others ask of it.

#pragma once

#include <map>
#include <string>

#include "engine/files/safetensors.h"
#include "engine/train/checkpoints/checkpoint.h"

namespace tessera::engine {

inline constexpr const char* kCheckpointFormat =
    "tessera-checkpoint-2";  // which has digests; 1 has none

// Throws InputError where it is missing, or no whole number from 0 on.
[[nodiscard]] Index number_in_metadata(const SafetensorsReader& file, const std::string& key);

[[nodiscard]] std::map<std::string, std::string> metadata_of(const TrainingState& state);

// The inverse, but for what is asked of a checkpoint before it is loaded. Throws InputError where
// it is of another network.
[[nodiscard]] TrainingState state_in_metadata(const SafetensorsReader& file,
                                              const partitioner::Network& network);

}  // namespace tessera::engine
