// The middle one of some measurements: unlike their mean, no single odd one can move it far.

#pragma once

#include <vector>

namespace tessera::engine {

// Of an even number: half way between the two in the middle. Requires at least one.
[[nodiscard]] double median(std::vector<double> values);

}  // namespace tessera::engine
