#include "engine/probe/round_robin.h"

#include <set>

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::round_robin;

TEST_CASE("each pair meets in one round, and nobody is in two pairs of a round") {
  for (int players = 2; players <= 13; ++players) {
    CAPTURE(players);
    std::set<std::pair<int, int>> met;
    for (const auto& round : round_robin(players)) {
      std::set<int> busy;
      for (const auto& [a, b] : round) {
        CHECK(a >= 0);
        CHECK(a < b);
        CHECK(b < players);
        CHECK(busy.insert(a).second);
        CHECK(busy.insert(b).second);
        CHECK(met.insert({a, b}).second);
      }
    }
    CHECK(static_cast<int>(met.size()) == players * (players - 1) / 2);
  }
}

TEST_CASE("there are no more rounds than there have to be") {
  CHECK(round_robin(8).size() == 7);
  CHECK(round_robin(7).size() == 7);  // one rests
  CHECK(round_robin(2).size() == 1);
  CHECK(round_robin(1).empty());
}

}  // namespace
