// Whether the ranks that hold the same elements of a parameter hold the same bits. Each element is
// updated by its owner alone, who sends it to the others, so copies are equal on any mix of
// processors and compilers; where they are not, memory or a message was damaged.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/execution/execution.h"

namespace tessera::engine {

struct UnequalCopies {
  std::string parameter;   // the first one that differs, see parameter_name()
  std::vector<int> ranks;  // whose copies of it differ from that of the lowest rank with the same
  int lowest = 0;          // which is this one
  int parameters = 0;      // how many differ
};

// By digests of what is learnt: some bytes of each parameter travel. Nothing where all copies are
// equal. All ranks of the execution call this together, or of independent replicas those of each,
// and learn the same; values that are on their way are waited for.
[[nodiscard]] std::optional<UnequalCopies> unequal_copies(Execution<float>& execution);

}  // namespace tessera::engine
