// What a supervisor has noted, as events of the run that goes on.

#include "engine/session/faults_since.h"

#include <chrono>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::FaultsSince;
using Events = std::vector<std::pair<std::string, std::string>>;

double now_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

TEST_CASE("what was noted is told in its order, and the first step since says once what it cost") {
  const tests::TemporaryFolder folder;
  const std::string file = folder / "faults";
  std::ofstream(file) << fmt::format("{{\"unix_s\":{},\"text\":\"killed\"}}\n", now_s() - 100)
                      << "damaged\n"
                      << R"({"unix_s":1,"kind":"return","text":"back"})"
                      << "\n";
  FaultsSince faults(file, 12, 9);
  Events told;
  faults.tell(
      [&](const std::string& kind, const std::string& text) { told.emplace_back(kind, text); });
  CHECK(told == Events{{"fault", "killed"}, {"return", "back"}});
  CHECK(!std::filesystem::exists(file));
  const auto recovery = faults.recovered();
  REQUIRE(recovery);
  CHECK(recovery->lost_s >= 99);
  CHECK(recovery->repeated_steps == 3);
  CHECK(!faults.recovered());
}

TEST_CASE("where nothing was noted there is nothing to recover from") {
  CHECK(!FaultsSince("", 12, 9).recovered());
}

TEST_CASE("the figures of a recovery are its seconds to a millisecond and its steps") {
  const auto figures = figures_of(FaultsSince::Recovery{4.12345, 2});
  CHECK(figures == std::map<std::string, double>{{"lost_s", 4.123}, {"repeated_steps", 2}});
}

}  // namespace
