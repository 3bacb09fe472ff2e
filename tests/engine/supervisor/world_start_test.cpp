#include "engine/supervisor/world_start.h"

#include <doctest/doctest.h>

namespace tessera::engine {

TEST_CASE("a profile has a row for each rank of each host, in the order of the host file") {
  const std::vector<Host> hosts{{"pi1", 1}, {"pi2", 4}, {"pi3", 2}};
  using Rows = std::vector<int>;
  CHECK(profile_rows(hosts, {0, 1, 2}) == Rows{0, 1, 2, 3, 4, 5, 6});
  CHECK(profile_rows(hosts, {2, 0}) == Rows{5, 6, 0});
  CHECK(profile_rows(hosts, {}).empty());
}

}  // namespace tessera::engine
