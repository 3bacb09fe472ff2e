#include "engine/chart/axis.h"

#include <algorithm>
#include <cmath>

namespace tessera::engine {

double Axis::at(double value) const {
  const double share =
      logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
  return begin + share * (end - begin);
}

void Extent::include(double value) {
  if (!std::isfinite(value)) {
    return;
  }
  low = empty ? value : std::min(low, value);
  high = empty ? value : std::max(high, value);
  empty = false;
}

}  // namespace tessera::engine
