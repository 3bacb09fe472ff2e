#include "engine/supervisor/run_notes.h"

#include <chrono>
#include <filesystem>

#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "engine/session/faults_since.h"
#include "engine/supervisor/supervision.h"

namespace tessera::engine {

TEST_CASE("ranks that follow are told what a supervisor has noted, and how long ago it was") {
  const tests::TemporaryFolder folder;
  const RunNotes notes(folder.path());
  notes.add("fault", "pi3 has \"vanished\"", "pi3", 100);
  notes.add("return", "pi3 is back", "pi3");
  FaultsSince faults((folder / kFaultsName).string(), 21, 20);
  std::vector<std::string> told;
  faults.tell([&](const std::string& kind, const std::string& text, const EventDetails& details) {
    told.push_back(kind + ": " + text + " (" + details.device + ")");
  });
  CHECK(told ==
        std::vector<std::string>{"fault: pi3 has \"vanished\" (pi3)", "return: pi3 is back (pi3)"});
  const auto cost = faults.recovered(1);
  REQUIRE(cost);
  CHECK(cost->lost_s > 90);
}

TEST_CASE("a supervisor that was gone is a fault of a run that was going, since its last record") {
  const tests::TemporaryFolder state;
  const tests::TemporaryFolder run;
  const RunNotes notes(state.path());
  notes.add_lost_supervisor(run.path(), "pi1");
  tests::put_bytes(run / "run.json", R"({"state":"interrupted"})");
  tests::put_bytes(run / "metrics.jsonl", "");
  const auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::seconds(50);
  std::filesystem::last_write_time(run / "metrics.jsonl", long_ago);
  notes.add_lost_supervisor(run.path(), "pi1");
  CHECK_FALSE(std::filesystem::exists(state / kFaultsName));
  tests::put_bytes(run / "run.json", R"({"state":"running"})");
  notes.add_lost_supervisor(run.path(), "pi1");
  notes.add_lost_supervisor(run.path(), "pi1");  // what ended the run is noted already
  FaultsSince faults((state / kFaultsName).string(), 21, 20);
  CHECK(faults.stood_s().value() >= 50);
  CHECK(faults.stood_s().value() < 60);
  int told = 0;
  faults.tell([&](const std::string& kind, const std::string& text, const EventDetails& details) {
    ++told;
    CHECK(kind == "fault");
    CHECK(text == "the supervisor on pi1 was gone");
    CHECK(details.device == "pi1");
    CHECK(details.ago_s >= 50);
  });
  CHECK(told == 1);
}

TEST_CASE("what cannot be noted is lost, and nothing else") {
  const RunNotes notes("/nowhere/at/all");
  CHECK_NOTHROW(notes.add("fault", "pi3 has vanished", "pi3"));
}

}  // namespace tessera::engine
