// What the sections of a page call things.

#pragma once

#include <string>

#include "engine/run_view/run_data.h"

namespace tessera::engine {

[[nodiscard]] std::string duration_text(double seconds);  // "2 h 13 min", "41 s"; a dash: unknown
[[nodiscard]] std::string host_of(const RunData& run, int rank);    // empty: unknown
[[nodiscard]] std::string rank_name(const RunData& run, int rank);  // "rank 0, pi-1", "rank 0"

// The last part of a path without its ending: "lenet5" of "models/lenet5.cfg".
[[nodiscard]] std::string stem_of(const std::string& path);

// How a group is cut, by the regions that its ranks own: "2x2 tiles", "images in 4", "one device".
[[nodiscard]] std::string cut_text(const OutlinedGroup& group);

// "layers 0-7", "layer 3"
[[nodiscard]] std::string layers_name(const OutlinedGroup& group);

}  // namespace tessera::engine
