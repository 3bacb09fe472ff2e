#include "engine/supervisor/leadership.h"

#include <fstream>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Claim;
using engine::HeardSupervisor;
using engine::judged;
using engine::SupervisorId;

const SupervisorId kNone{};

TEST_CASE("the older its folder, the later a device tries to take over") {
  using engine::RecordAge;
  using engine::turn_to_take_over;
  constexpr Index kDevices = 6;
  const RecordAge told{3, 3};
  CHECK(turn_to_take_over(1, kDevices, told, told) == 0);
  CHECK(turn_to_take_over(5, kDevices, told, RecordAge{3, 3}) == 4);
  CHECK(turn_to_take_over(2, kDevices, told, RecordAge{4, 3}) == 1);  // what it was told is older
  // Of the supervisor before that one, of a copy that was given up, none at all.
  const Index last_current = turn_to_take_over(kDevices - 1, kDevices, told, told);
  for (const auto& here : {std::optional(RecordAge{2, 2}), std::optional(RecordAge{3, 2}), {}}) {
    CHECK(turn_to_take_over(1, kDevices, told, here) > last_current);
  }
  // The first device has what was there before two others had led the run.
  CHECK(turn_to_take_over(1, kDevices, told, RecordAge{1, 1}) >
        turn_to_take_over(5, kDevices, told, RecordAge{2, 2}));
  CHECK(turn_to_take_over(1, kDevices, {Index{1} << 40, 0}, RecordAge{1, 1}) <= 5 * kDevices);
}

TEST_CASE("a supervisor that leads a run is followed by no other one while it is heard") {
  const HeardSupervisor leader{{3, "5555"}, true, 0, 0};
  const std::vector<SupervisorId> others{{3, "1111"}, {3, "9999"}, {4, "1111"}, {9, "0"}};
  for (const SupervisorId& other : others) {
    const bool is_newer = other.generation > 3;
    CHECK(judged(other, false, leader.id, leader) == (is_newer ? Claim::Heard : Claim::Superseded));
    CHECK(judged(other, false, kNone, leader) == Claim::Heard);
  }
  CHECK(judged(leader.id, false, leader.id, leader) == Claim::Granted);  // another agent of its own
}

TEST_CASE("once it is not heard of any more only a newer one may follow") {
  const SupervisorId gone{3, "5555"};
  CHECK(judged({4, "1111"}, false, gone, std::nullopt) == Claim::Granted);
  // A device that was off counts from what it knew then.
  CHECK(judged({3, "9999"}, false, gone, std::nullopt) == Claim::Superseded);
  CHECK(judged({2, "9999"}, false, gone, std::nullopt) == Claim::Superseded);
  CHECK(judged({3, "9999"}, false, {3, ""}, std::nullopt) == Claim::Granted);
  CHECK(judged({1, "1111"}, false, kNone, std::nullopt) == Claim::Granted);
}

TEST_CASE("of two that count alike and both lead, in parts of a network, one stays everywhere") {
  const SupervisorId less{3, "1111"};
  const SupervisorId more{3, "9999"};
  CHECK(judged(less, true, more, HeardSupervisor{more, true, 0, 0}) == Claim::Superseded);
  CHECK(judged(more, true, less, HeardSupervisor{less, true, 0, 0}) == Claim::Heard);
  CHECK(judged(more, true, less, std::nullopt) == Claim::Granted);
  CHECK(judged(more, false, less, std::nullopt) == Claim::Superseded);  // it has only begun
  CHECK(judged({2, "9999"}, true, less, std::nullopt) == Claim::Superseded);
}

TEST_CASE(
    "of two that begin at once all devices grant the run to the same one, whoever came first") {
  const std::vector<std::pair<SupervisorId, SupervisorId>> pairs{{{3, "1111"}, {3, "2222"}},
                                                                 {{3, "2222"}, {4, "1111"}}};
  for (const auto& [less, more] : pairs) {
    CHECK(judged(less, false, kNone, HeardSupervisor{more, false, 0, 0}) == Claim::Heard);
    CHECK(judged(more, false, kNone, HeardSupervisor{less, false, 0, 0}) == Claim::Granted);
  }
}

TEST_CASE("a supervisor is there while it is heard by an agent that has not ended") {
  const pid_t ended = ::fork();
  if (ended == 0) {
    ::_exit(0);
  }
  ::waitpid(ended, nullptr, 0);
  CHECK(engine::is_there({{3, "5555"}, true, 10, ::getpid()}, 15, 6));
  CHECK(!engine::is_there({{3, "5555"}, true, 10, ::getpid()}, 16, 6));
  CHECK(!engine::is_there({{3, "5555"}, true, 20, ::getpid()}, 15, 6));  // before the last boot
  CHECK(!engine::is_there({{3, "5555"}, true, 10, ended}, 15, 6));
  CHECK(engine::is_there({{3, "5555"}, true, 10, 0}, 15, 6));
}

TEST_CASE("what was heard comes back from its file, and a damaged file says nothing") {
  const tests::TemporaryFolder folder;
  const HeardSupervisor heard{{7, "0123456789abcdef"}, true, 12.5, 4711};
  const auto file = folder / "heard";
  CHECK(!engine::read_heard(file));
  engine::write_heard(file, heard);
  CHECK(engine::read_heard(file) == heard);
  for (const char* text : {"", "12.5\n", "[]", R"({"generation":7})", R"({"supervisor":7})"}) {
    std::ofstream(file) << text;
    CHECK(!engine::read_heard(file));
  }
  engine::write_heard(folder / "missing/heard", heard);
  CHECK(!std::filesystem::exists(folder / "missing"));
}

}  // namespace
