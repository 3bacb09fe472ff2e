#include "engine/supervisor/roster.h"

#include <doctest/doctest.h>

namespace tessera::engine {

namespace {

using Devices = std::vector<int>;

constexpr Roster::Prospect kLongRun{.step_s = 1, .steps_left = 1000, .change_s = 5};

}  // namespace

TEST_CASE(
    "a device that was lost is looked for ever more rarely, and taken back once it is steady") {
  Roster roster(3);
  CHECK(roster.taking_part() == Devices{0, 1, 2});
  roster.lose(1, 100);
  CHECK(roster.taking_part() == Devices{0, 2});
  CHECK_FALSE(roster.is_to_be_tried(1, 101));
  CHECK(roster.is_to_be_tried(1, 102));
  roster.missed(1, 102);
  CHECK_FALSE(roster.is_to_be_tried(1, 105));
  CHECK(roster.is_to_be_tried(1, 106));
  CHECK(roster.is_to_be_tried(1, 104, true));
  CHECK_FALSE(roster.is_to_be_tried(1, 103, true));
  CHECK_FALSE(roster.is_to_be_tried(0, 1000));
  roster.reach(1, 106);
  CHECK_FALSE(roster.is_to_be_tried(1, 1000));
  CHECK(roster.worth_taking_back(kLongRun, 110).empty());
  CHECK(roster.worth_taking_back(kLongRun, 111) == Devices{1});
  roster.take_back(1);
  CHECK(roster.taking_part() == Devices{0, 1, 2});
  CHECK(roster.worth_taking_back(kLongRun, 200).empty());
}

TEST_CASE("a device that is lost again and again has to be there for longer") {
  Roster roster(2);
  double now_s = 0;
  double waited_s = 0;
  for (int loss = 0; loss < 12; ++loss) {
    roster.lose(1, now_s);
    roster.lose(1, now_s);  // what is said twice is one loss
    roster.reach(1, now_s);
    double steady_s = 0;
    while (roster.worth_taking_back({1, 1'000'000, 5}, now_s + steady_s).empty()) {
      steady_s += 1;
    }
    CHECK(steady_s >= waited_s);
    CHECK(steady_s <= 600);
    waited_s = steady_s;
    now_s += steady_s;
    roster.take_back(1);
  }
  CHECK(waited_s == 600);
}

TEST_CASE("a device is not taken back for what is nearly done, or of which nothing is known") {
  Roster roster(4);
  roster.lose(3, 0);
  roster.reach(3, 0);
  // With 4 instead of 3 devices a quarter of what is left is saved: 10 s of 40 at twice 5 s.
  CHECK(roster.worth_taking_back({1, 40, 5}, 60).empty());
  CHECK(roster.worth_taking_back({1, 41, 5}, 60) == Devices{3});
  CHECK(roster.worth_taking_back({0, 1000, 5}, 60).empty());
}

TEST_CASE("a device that went silent while it waited has to be reached again") {
  Roster roster(2);
  roster.lose(1, 0);
  roster.reach(1, 10);
  roster.missed(1, 12);
  CHECK(roster.worth_taking_back(kLongRun, 100).empty());
  CHECK(roster.is_to_be_tried(1, 100));
  roster.reach(1, 100);
  CHECK(roster.worth_taking_back(kLongRun, 104).empty());
  CHECK(roster.worth_taking_back(kLongRun, 105) == Devices{1});
}

}  // namespace tessera::engine
