// Sections of a .cfg file that are heads of detectors.

#pragma once

#include <vector>

#include "partitioner/cfg/cfg_options.h"
#include "partitioner/network/network.h"

namespace tessera::partitioner {

// What a section says of a layer, and the maps that it reads.
struct ReadLayer {
  Operation operation;
  std::vector<int> inputs;
};

// Of layer number `layer`. Throw InputError at the key's line.
[[nodiscard]] ReadLayer read_yolo(CfgOptions& options, int layer);
[[nodiscard]] ReadLayer read_yolox(CfgOptions& options, int layer);
[[nodiscard]] ReadLayer read_region(CfgOptions& options, int layer);
[[nodiscard]] ReadLayer read_detection(CfgOptions& options, int layer);

}  // namespace tessera::partitioner
