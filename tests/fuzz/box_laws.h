// The laws of boxes that were read.

#pragma once

#include <algorithm>
#include <span>

#include "tests/fuzz/harness.h"

#include "engine/data/sets/box_labels.h"

namespace tessera::tests {

inline void check_boxes(std::span<const engine::Box> boxes, int classes) {
  for (const engine::Box& box : boxes) {
    law(box.label >= 0 && box.label < classes, "a box is of one of the classes");
    law(box.centre_x >= 0 && box.centre_x <= 1 && box.centre_y >= 0 && box.centre_y <= 1,
        "the centre of a box is on the picture");
    law(box.width > 0 && box.width <= 1 && box.height > 0 && box.height <= 1, "a box has a size");
  }
}

inline void check_read_boxes(const engine::ReadBoxes& read, int classes) {
  check_boxes(read.boxes, classes);
  for (const engine::DataProblem& problem : read.problems) {
    law(!problem.what.empty(), "a problem says what it is");
  }
}

[[nodiscard]] inline bool is_usable(const std::vector<engine::DataProblem>& problems) {
  return std::none_of(problems.begin(), problems.end(), [](const engine::DataProblem& each) {
    return engine::is_error(each.fault);
  });
}

}  // namespace tessera::tests
