// Sentences: why the chosen partition wins over its alternatives, or what does.

#pragma once

#include <string>
#include <vector>

#include "partitioner/text/alternatives.h"

namespace tessera::partitioner {

// Reasons from all but `why`; the chosen partition leaves work to `busy` of so many devices.
[[nodiscard]] std::vector<std::string> why_it_wins(const Alternatives& alternatives,
                                                   Index busy,
                                                   Index devices);

}  // namespace tessera::partitioner
