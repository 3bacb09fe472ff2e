#include "engine/session/copy_watch.h"

#include <fmt/format.h>

#include "tests/support/copied_parameters.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Communicator;
using engine::CopyWatch;
using tests::TrainingWithCopies;

constexpr Index kLast = 1000;

void damage_last_rank(TrainingWithCopies& training, const Communicator& world) {
  if (world.rank() == world.size() - 1) {
    training.damage();
  }
}

}  // namespace

TEST_CASE("a copy of a parameter that parts is told on all ranks, at the next hundredth step") {
  const Communicator world = Communicator::world();
  TrainingWithCopies training(world);
  training.step();
  CopyWatch watch;
  CHECK(!watch.look(training.execution(), 100, kLast));
  damage_last_rank(training, world);
  CHECK(!watch.look(training.execution(), 199, kLast));
  const auto told = watch.look(training.execution(), 200, kLast);
  CHECK(told.has_value() == (world.size() > 1));
  CHECK(told == watch.found());
  if (told) {
    const std::string begin = fmt::format(
        "after step 200 ranks hold different values of layers.1.weight: rank {} than rank ",
        world.size() - 1);
    CHECK(told->substr(0, begin.size()) == begin);
  }
}

TEST_CASE("copies that have parted are told of once") {
  const Communicator world = Communicator::world();
  TrainingWithCopies training(world);
  damage_last_rank(training, world);
  CopyWatch watch;
  CHECK(watch.look(training.execution(), 100, kLast).has_value() == (world.size() > 1));
  CHECK(!watch.look(training.execution(), 200, kLast));
  CHECK(!watch.look(training.execution(), kLast, kLast));
  CHECK(watch.found().has_value() == (world.size() > 1));
}

TEST_CASE("copies are compared after the last step, whichever that is") {
  const Communicator world = Communicator::world();
  TrainingWithCopies training(world);
  damage_last_rank(training, world);
  CopyWatch watch;
  CHECK(!watch.look(training.execution(), 6, 7));
  CHECK(watch.look(training.execution(), 7, 7).has_value() == (world.size() > 1));
}
