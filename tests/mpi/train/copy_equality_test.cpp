#include "engine/train/verifying/copy_equality.h"

#include "tests/support/copied_parameters.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

TEST_CASE("copies of parameters are equal after steps, and one that is damaged is found on all") {
  const engine::Communicator world = engine::Communicator::world();
  tests::TrainingWithCopies training(world);
  for (int step = 0; step < 2; ++step) {
    training.step();
  }
  CHECK(!engine::unequal_copies(training.execution()));

  const int damaged = world.size() - 1;
  if (world.rank() == damaged) {
    training.damage();
  }
  const auto found = engine::unequal_copies(training.execution());
  CHECK(found.has_value() == (world.size() > 1));
  if (found) {
    CHECK(found->parameter == "layers.1.weight");
    CHECK(found->parameters == 1);
    CHECK(found->lowest < damaged);  // the first rank may have no cell of that layer
    CHECK(found->ranks == std::vector<int>{damaged});
  }
}
