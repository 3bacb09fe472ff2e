#include "engine/system/host_name.h"

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

TEST_CASE("of the ranks on a machine one is the first, wherever the others are") {
  const std::vector<std::string> hosts = {"pi1", "pi2", "pi1", "pi3", "pi2"};
  std::vector<int> first;
  for (int rank = 0; rank < std::ssize(hosts); ++rank) {
    if (engine::is_first_on_host(hosts, rank)) {
      first.push_back(rank);
    }
  }
  CHECK(first == std::vector<int>{0, 1, 3});
}
