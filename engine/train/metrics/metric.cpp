#include "engine/train/metrics/metric.h"

#include <cmath>
#include <fmt/format.h>

namespace tessera::engine {

std::string described(const MetricValue& value) {
  if (std::isnan(value.value)) {
    return "no " + value.name;
  }
  return value.is_share ? fmt::format("{} {:.2f} %", value.name, 100 * value.value)
                        : fmt::format("{} {:.4f}", value.name, value.value);
}

}  // namespace tessera::engine
