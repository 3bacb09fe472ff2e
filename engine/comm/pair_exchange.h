// Bytes between pairs of ranks: each rank has something for some others, and both ends know of
// whom. How many bytes they are only the sender knows.

#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "engine/comm/communicator.h"

namespace tessera::engine {

using BytesByRank = std::map<int, std::vector<std::byte>>;

// What the ranks `from` have for this one. All ranks call this together.
[[nodiscard]] BytesByRank exchange_pairs(const Communicator& communicator,
                                         const BytesByRank& mine,
                                         const std::vector<int>& from);

// The same where the receiver knows how many bytes come, too: `theirs` has room for them.
void exchange_known(const Communicator& communicator, const BytesByRank& mine, BytesByRank& theirs);

}  // namespace tessera::engine
