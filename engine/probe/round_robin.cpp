#include "engine/probe/round_robin.h"

#include <algorithm>

namespace tessera::engine {

std::vector<std::vector<std::pair<int, int>>> round_robin(int players) {
  if (players < 2) {
    return {};
  }
  const int places = players + players % 2;  // who meets the last of an even number rests
  const int moving = places - 1;
  std::vector<std::vector<std::pair<int, int>>> rounds(static_cast<std::size_t>(moving));
  for (int round = 0; round < moving; ++round) {
    for (int place = 0; place < places / 2; ++place) {
      const int a = place == 0 ? moving : (round + place) % moving;
      const int b = (round - place + moving) % moving;
      if (std::max(a, b) < players) {
        rounds[static_cast<std::size_t>(round)].emplace_back(std::min(a, b), std::max(a, b));
      }
    }
  }
  return rounds;
}

}  // namespace tessera::engine
