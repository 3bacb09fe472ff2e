#include "engine/data/batch/input_schedule.h"

#include <algorithm>

#include "engine/base/random.h"

namespace tessera::engine {

const partitioner::InputSize& InputSchedule::at(Index step) const {
  constexpr std::uint64_t kSizes = 0x696e707574732121U;  // draws of other parts have other seeds
  const Index turn = step / kStepsOfSize;
  if (turn == 0 || step >= largest_from_) {
    return sizes_.largest();
  }
  const std::uint64_t seed = mix_bits(seed_ ^ kSizes);
  const auto place = static_cast<std::uint64_t>(turn);
  const double scale = 1 + random_uniform(seed, place, 0) * (sizes_.factor() - 1);
  return sizes_.at(random_bits(seed, place, 1) >> 63U != 0 ? 1 / scale : scale);
}

Index largest_input_from(Index steps) {
  constexpr Index kLast = 100;
  constexpr Index kShare = 10;
  return steps > 0 ? steps - std::min(kLast, steps / kShare) : InputSchedule::kNever;
}

}  // namespace tessera::engine
