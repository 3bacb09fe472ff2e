// Ranks that work together derive the same from the same files, each for itself. On a cluster a
// machine may have another version of a file: messages would then not fit together, or numbers
// would be wrong without a word.

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/comm/communicator.h"

namespace tessera::engine {

// "rank 1 (pi2)".
[[nodiscard]] std::string rank_on(int rank, std::string_view host);

// A problem of this rank, or none, beside those of the others that have looked: with its name where
// one of these has none. All ranks call this together.
[[nodiscard]] std::optional<std::string> named_problem(const Communicator& communicator,
                                                       const std::optional<std::string>& problem,
                                                       bool looked = true);

// Throws AgreedError on all ranks where `text` is not the same on all of them; it names a rank that
// "has another WHAT than rank 0". All ranks call this together; what travels is a fingerprint.
void expect_same(std::string_view text, const std::string& what, const Communicator& communicator);

}  // namespace tessera::engine
