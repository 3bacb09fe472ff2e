#include "engine/data/batch/shuffle.h"

#include <algorithm>
#include <bit>

#include "engine/base/random.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

Index shuffled_item(Index size, std::uint64_t seed, Index epoch, Index place) {
  constexpr std::uint64_t kOrder = 0x65706f6368U;  // draws of other parts have other seeds
  constexpr std::uint64_t kRounds = 10;  // even for domains of a few items close to uniform
  expects(place >= 0 && place < size, "a place lies in its epoch");
  const std::uint64_t key = random_bits(seed, kOrder, static_cast<std::uint64_t>(epoch));
  const int bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(size - 1)));
  const int half = std::max((bits + 1) / 2, 1);
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  auto value = static_cast<std::uint64_t>(place);
  do {
    std::uint64_t left = value >> half;
    std::uint64_t right = value & mask;
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      const std::uint64_t mixed = left ^ (random_bits(key, round, right) >> 32U & mask);
      left = right;
      right = mixed;
    }
    value = left << half | right;
  } while (value >= static_cast<std::uint64_t>(size));
  return static_cast<Index>(value);
}

}  // namespace tessera::engine
