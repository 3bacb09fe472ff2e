// Texts that ranks tell each other.

#pragma once

#include <string>
#include <vector>

#include "engine/comm/communicator.h"

namespace tessera::engine {

// Each rank's text on every rank, in rank order. All ranks call this together.
[[nodiscard]] std::vector<std::string> texts_of_ranks(const Communicator& communicator,
                                                      const std::string& mine);

// Each rank's list of texts on every rank, in rank order. All ranks call this together.
[[nodiscard]] std::vector<std::vector<std::string>> lists_of_ranks(
    const Communicator& communicator, const std::vector<std::string>& mine);

// The names of the machines that ranks run on. All ranks call this together.
[[nodiscard]] std::vector<std::string> hosts_of_ranks(const Communicator& communicator);

}  // namespace tessera::engine
