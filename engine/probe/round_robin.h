// Who meets whom when each of some players is to meet each other one, as many pairs at a time as
// there can be.

#pragma once

#include <utility>
#include <vector>

namespace tessera::engine {

// Rounds of pairs (a, b), a < b: nobody is in two pairs of a round, each pair meets in one round.
// By the circle method: one player stays, the others move on by a place from round to round. An odd
// number of players takes one round more, and one of them rests in each.
[[nodiscard]] std::vector<std::vector<std::pair<int, int>>> round_robin(int players);

}  // namespace tessera::engine
