#include "engine/supervisor/supervision.h"

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::longest_phase_s;

TEST_CASE("a test may take longer than twenty steps, by as many as it is long, but not for ever") {
  CHECK(longest_phase_s("steps", 0, 0) == 30);
  CHECK(longest_phase_s("steps", 5, 0) == 100);
  CHECK(longest_phase_s("test", 5, 60) == 6000);
  CHECK(longest_phase_s("test", 0.001, 60) == 30);
  CHECK(!longest_phase_s("test", 0, 60));  // no step was timed
  CHECK(!longest_phase_s("setup", 5, 0));
  CHECK(!longest_phase_s("", 5, 0));
}

}  // namespace
