// The middle one of some measurements: unlike their mean, no single odd one can move it far.

#pragma once

#include <vector>

namespace tessera::engine {

// Half way between the two in the middle where there is an even number. Requires at least one.
[[nodiscard]] double median(std::vector<double> values);

}  // namespace tessera::engine
