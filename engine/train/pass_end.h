// What ranks agree on at the end of a pass, or of a look at all that they have.

#pragma once

#include <optional>
#include <string>

#include "engine/execution/execution.h"

namespace tessera::engine {

// The loss of all ranks, and the signal that one of them got. Throws AgreedError on all ranks where
// one of them has a problem with its images. All ranks call this together, after forward().
PassOutcome exchange_loss(Execution<float>& execution,
                          const Pass& pass,
                          const std::optional<std::string>& images_problem);

// Throws AgreedError where the ranks of an outcome have a problem.
void expect_no_problem(const PassOutcome& outcome);

// In rank order.
[[nodiscard]] double sum_over_ranks(const Communicator& communicator, double mine);

}  // namespace tessera::engine
