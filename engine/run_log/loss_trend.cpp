#include "engine/run_log/loss_trend.h"

#include <algorithm>

#include "engine/base/median.h"

namespace tessera::engine {

void LossTrend::begin_with(double loss) {
  from_ = std::max(from_, loss);
  begun_ = true;
}

void LossTrend::add(double loss) {
  constexpr std::size_t kSteps = 10;
  if (!begun_) {
    begin_with(loss);
  }
  last_.push_back(loss);
  if (last_.size() > kSteps) {
    last_.pop_front();
  }
}

std::optional<RisenLoss> LossTrend::risen() const {
  if (last_.empty()) {
    return std::nullopt;
  }
  const double to = median({last_.begin(), last_.end()});
  return to > 2 * from_ ? std::optional(RisenLoss{from_, to}) : std::nullopt;
}

}  // namespace tessera::engine
