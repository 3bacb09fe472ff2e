#include "engine/comm/attendance.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "engine/comm/watchdog.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Attendance;

TEST_CASE("a rank is silent once it was heard of and then not for the limit") {
  Attendance attendance(3, 0, 100);
  attendance.heard({1, 0}, 101);
  attendance.heard({2, 0}, 105);
  CHECK(attendance.silent(10, 110).empty());
  CHECK(attendance.silent(10, 111) == std::vector<int>{1});
  CHECK(attendance.silent(10, 115) == std::vector<int>{1, 2});
  attendance.heard({1, 0}, 115);
  CHECK(attendance.silent(10, 116) == std::vector<int>{2});
}

TEST_CASE("a rank that was never heard of is not counted as silent, nor is this rank itself") {
  const Attendance attendance(3, 1, 0);
  CHECK(attendance.silent(10, 1000).empty());
}

TEST_CASE("a time in which this rank stood still is nobody's silence") {
  Attendance attendance(2, 0, 0);
  attendance.heard({1, 0}, 1);
  attendance.forgive(100);
  CHECK(attendance.silent(10, 105).empty());
  CHECK(attendance.silent(10, 111) == std::vector<int>{1});
}

TEST_CASE("all are stuck for as long as the one that got something last") {
  Attendance attendance(4, 0, 0);
  attendance.heard({1, 30}, 1);
  attendance.heard({2, 20}, 1);
  CHECK(attendance.all_stuck_s(40) == 20);  // rank 3 was never heard of
  CHECK(attendance.all_stuck_s(10) == 10);
  attendance.heard({3, 0}, 2);  // it works
  CHECK(attendance.all_stuck_s(40) == 0);
}

TEST_CASE("a rank that was silent for a while is told of once it is back, and only once") {
  Attendance attendance(3, 0, 0);
  engine::Returns returns(5, 2);
  const auto beat = [&](int rank, double now_s) {
    returns.heard(rank, attendance.heard({rank, 0}, now_s), now_s);
  };
  for (double now = 20; now <= 24; ++now) {  // first heard of late: no silence
    beat(1, now);
    beat(2, now);
    CHECK_FALSE(returns.news(now));
  }
  beat(2, 28);  // some heartbeats were lost
  CHECK_FALSE(returns.news(31));
  beat(1, 36);
  CHECK_FALSE(returns.news(36));
  beat(1, 37);
  beat(2, 37);
  CHECK_FALSE(returns.news(37));
  beat(1, 39);
  const auto back = returns.news(39);
  REQUIRE(back);
  CHECK(back->ranks == std::vector<int>{1, 2});
  CHECK(back->silent_s == 12);
  CHECK_FALSE(returns.news(60));
  const std::vector<std::string> hosts{"pi1", "pi2", "pi3"};
  CHECK(describe(*back, hosts) == "pi2 (rank 1), pi3 (rank 2) answer again after 12 s of silence");
  CHECK(engine::describe({{2}, 7}, hosts) == "pi3 (rank 2) answers again after 7 s of silence");
}

TEST_CASE("where this rank itself stood still nobody was silent") {
  Attendance attendance(2, 0, 0);
  engine::Returns returns(5, 2);
  attendance.heard({1, 0}, 1);
  attendance.forgive(100);
  returns.heard(1, attendance.heard({1, 0}, 101), 101);
  CHECK_FALSE(returns.news(110));
}

TEST_CASE("a stall is described by the ranks that do not answer and their machines") {
  const std::vector<std::string> hosts{"pi1", "pi2", "pi3"};
  CHECK(engine::describe({60, {2}, {0, 1}, hosts}) == "pi3 (rank 2) has not answered for 60 s");
  CHECK(engine::describe({30, {1, 2}, {0}, hosts}) ==
        "pi2 (rank 1), pi3 (rank 2) have not answered for 30 s");
  CHECK(engine::describe({60, {}, {0, 1, 2}, hosts}) ==
        "all ranks have waited for each other for 600 s, and no message arrived");
}

}  // namespace
