#include "engine/replicas/gossip.h"

#include <map>
#include <set>

#include <doctest/doctest.h>

using namespace tessera;          // NOLINT(google-build-using-namespace): a test of this project
using namespace tessera::engine;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

TEST_CASE("replicas pair up with each other, and one of an odd number with itself") {
  for (int replicas = 1; replicas <= 9; ++replicas) {
    for (Index step = 1; step <= 50; ++step) {
      int alone = 0;
      for (int replica = 0; replica < replicas; ++replica) {
        const int partner = gossip_partner(7, step, replicas, replica);
        CHECK(gossip_partner(7, step, replicas, partner) == replica);
        alone += partner == replica ? 1 : 0;
      }
      CHECK(alone == replicas % 2);
    }
  }
}

TEST_CASE("pairs follow from the seed, change from step to step, and all come to pass") {
  std::map<int, std::set<int>> partners;
  int changes = 0;
  int differences = 0;
  for (Index step = 1; step <= 200; ++step) {
    for (int replica = 0; replica < 5; ++replica) {
      const int partner = gossip_partner(3, step, 5, replica);
      CHECK(gossip_partner(3, step, 5, replica) == partner);
      partners[replica].insert(partner);
      changes += partner != gossip_partner(3, step + 1, 5, replica) ? 1 : 0;
      differences += partner != gossip_partner(4, step, 5, replica) ? 1 : 0;
    }
  }
  CHECK(changes > 500);
  CHECK(differences > 500);
  for (const auto& [replica, met] : partners) {
    CHECK(met.size() == 5);
  }
}

}  // namespace
