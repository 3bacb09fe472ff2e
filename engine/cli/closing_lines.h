// What is said at the end of training: where the weights are, and what to do with them.

#pragma once

#include <optional>
#include <string>

#include "engine/cli/commands.h"
#include "engine/train/checkpoint.h"

namespace tessera::engine {

// `step` is the last one, whose weights were saved; `since_best`: tests since the best one.
[[nodiscard]] std::string closing_lines(const TrainCommand& command,
                                        const std::optional<BestSoFar>& best,
                                        Index step,
                                        Index since_best);

}  // namespace tessera::engine
