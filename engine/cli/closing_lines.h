// What is said at the end of training: where the weights are, and what to do with them.

#pragma once

#include <string>

#include "engine/session/training_session.h"

namespace tessera::engine {

[[nodiscard]] std::string closing_lines(const TrainingRequest& request,
                                        const TrainingResult& result);

}  // namespace tessera::engine
