#include "engine/supervisor/run_notes.h"

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

TEST_CASE("what cannot be noted is lost, and nothing else") {
  const RunNotes notes("/nowhere/at/all");
  CHECK_NOTHROW(notes.add("fault", "pi3 has vanished", "pi3"));
}

}  // namespace tessera::engine
