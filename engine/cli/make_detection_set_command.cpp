#include <algorithm>
#include <fmt/format.h>

#include "engine/cli/commands.h"
#include "engine/data/composed_set.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/printable.h"
#include "partitioner/partition/partition.h"

namespace tessera::engine {

void run_make_detection_set(const MakeDetectionSetCommand& command) {
  constexpr Index kLeastSide = 32;
  constexpr Index kMostSide = 4096;
  const auto [rows, cols] = partitioner::parse_grid(command.size, "--size", partitioner::kPixels);
  if (std::min(rows, cols) < kLeastSide || std::max(rows, cols) > kMostSide) {
    throw InputError(
        "--size",
        0,
        fmt::format("{}: expected sides of {} to {}", command.size, kLeastSide, kMostSide));
  }
  const Index testing =
      command.test_pictures > 0 ? command.test_pictures : (command.pictures + 4) / 5;
  write_composed_set(
      command.out, command.from, {rows, cols, command.seed}, command.pictures, testing);
  fmt::print("{} pictures for training and {} for testing: {}\n",
             command.pictures,
             testing,
             printable(command.out + "/detection.data"));
}

}  // namespace tessera::engine
