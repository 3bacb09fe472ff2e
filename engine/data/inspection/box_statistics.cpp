#include "engine/data/inspection/box_statistics.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <optional>

#include "engine/base/in_threads.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

constexpr double kSmallArea = 32.0 * 32;
constexpr double kMediumArea = 96.0 * 96;

void count_object(double area, BoxStatistics& statistics) {
  ++statistics.objects;
  ++(area < kSmallArea    ? statistics.small
     : area < kMediumArea ? statistics.medium
                          : statistics.large);
  const auto bound = std::upper_bound(kSideBounds.begin(), kSideBounds.end(), std::sqrt(area));
  ++statistics.by_side[static_cast<std::size_t>(bound - kSideBounds.begin())];
}

}  // namespace

BoxStatistics statistics_of(const Dataset& dataset) {
  std::vector<std::optional<partitioner::MapShape>> shapes(
      static_cast<std::size_t>(dataset.size()));
  for_each_in_threads(dataset.size(), [&](Index item) {
    try {
      shapes[static_cast<std::size_t>(item)] = dataset.shape(item);
    } catch (const InputError&) {  // that is said elsewhere
    }
  });
  BoxStatistics statistics;
  statistics.pictures = dataset.size();
  for (Index item = 0; item < dataset.size(); ++item) {
    const std::optional<partitioner::MapShape>& shape = shapes[static_cast<std::size_t>(item)];
    const std::span<const Box> boxes = dataset.boxes(item);
    statistics.empty_pictures += boxes.empty() ? 1 : 0;
    for (const Box& box : boxes) {
      if (shape) {
        count_object(static_cast<double>(box.width) * static_cast<double>(shape->cols) *
                         static_cast<double>(box.height) * static_cast<double>(shape->rows),
                     statistics);
      }
    }
  }
  return statistics;
}

std::string side_name(std::size_t size) {
  if (size == 0) {
    return fmt::format("under {}", kSideBounds.front());
  }
  return size == kSideBounds.size()
             ? fmt::format("{} and more", kSideBounds.back())
             : fmt::format("{} to {}", kSideBounds[size - 1], kSideBounds[size]);
}

}  // namespace tessera::engine
