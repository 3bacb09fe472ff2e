#include "engine/base/median.h"

#include <algorithm>

#include "partitioner/base/errors.h"

namespace tessera::engine {

double median(std::vector<double> values) {
  expects(!values.empty(), "the median of no values is undefined");
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace tessera::engine
