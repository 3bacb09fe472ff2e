#include "engine/supervisor/state_folder.h"

#include <unistd.h>

#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

constexpr const char* kRun = "0123456789abcdef";

}  // namespace

TEST_CASE("an agent of the same supervisor by another name is on the same machine") {
  const tests::TemporaryFolder parent;
  const StateFolder first(kRun, {"a", "pi1"}, parent.path());
  CHECK(StateFolder::of_run(kRun, parent.path()) == first.path());
  CHECK_THROWS_WITH_AS(StateFolder(kRun, {"a", "pi2"}, parent.path()),
                       doctest::Contains("pi1 and pi2 are the same machine"),
                       InputError);
}

TEST_CASE("where somebody else has a folder of this name another one is taken, and found again") {
  const tests::TemporaryFolder parent;
  const auto taken = StateFolder::of_run(kRun, parent.path());
  std::filesystem::create_symlink("/", taken);
  const StateFolder folder(kRun, {}, parent.path());
  CHECK(folder.path() != taken);
  CHECK(folder.path().parent_path() == parent.path());
  CHECK(StateFolder::of_run(kRun, parent.path()) == folder.path());
  std::filesystem::remove(taken);
  CHECK(StateFolder::of_run(kRun, parent.path()) == folder.path());
}

}  // namespace tessera::engine
