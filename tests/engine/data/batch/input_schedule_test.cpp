#include "engine/data/batch/input_schedule.h"

#include <cmath>
#include <map>
#include <string>

#include <doctest/doctest.h>

namespace tessera::engine {

namespace {

using partitioner::InputSizes;
using partitioner::to_text;

const InputSizes& usual_sizes() {
  static const InputSizes sizes({416, 416}, 1.4, 32);
  return sizes;
}

}  // namespace

TEST_CASE("a size lasts for ten steps, of which the first are the largest") {
  const InputSchedule schedule(usual_sizes(), 3);
  for (Index step = 0; step < 1000; ++step) {
    CHECK(schedule.at(step) == schedule.at(step - step % 10));
  }
  CHECK(schedule.at(9) == usual_sizes().largest());
}

TEST_CASE("sizes follow from the seed and the step, and are drawn as often as they should be") {
  const InputSchedule schedule(usual_sizes(), 3);
  const InputSchedule same(usual_sizes(), 3);
  const InputSchedule other(usual_sizes(), 4);
  constexpr Index kTurns = 20000;
  std::map<std::string, double> drawn;
  Index differ = 0;
  for (Index turn = 1; turn <= kTurns; ++turn) {
    const Index step = 10 * turn;
    CHECK(schedule.at(step) == same.at(step));
    differ += schedule.at(step) == other.at(step) ? 0 : 1;
    drawn[to_text(schedule.at(step))] += 1.0 / kTurns;
  }
  CHECK(differ > kTurns / 2);
  for (const InputSizes::Share& share : usual_sizes().shares()) {
    CHECK(std::abs(drawn[to_text(share.size)] - share.probability) < 0.01);
  }
}

TEST_CASE("the last steps of a training are of the largest size") {
  CHECK(largest_input_from(500'200) == 500'100);
  CHECK(largest_input_from(500) == 450);
  CHECK(largest_input_from(0) == InputSchedule::kNever);
  const InputSchedule schedule(usual_sizes(), 3, 450);
  Index largest_before = 0;
  for (Index step = 10; step < 500; ++step) {
    const bool largest = schedule.at(step) == usual_sizes().largest();
    if (step >= 450) {
      CHECK(largest);
    } else {
      largest_before += largest ? 1 : 0;
    }
  }
  CHECK(largest_before < 440);
}

}  // namespace tessera::engine
