#include "engine/session/faults_since.h"

#include <chrono>
#include <fmt/format.h>

#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::FaultsSince;

double unix_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// What is told of the faults, a line each.
std::vector<std::string> told_by(FaultsSince& faults) {
  std::vector<std::string> lines;
  faults.tell([&](const std::string& kind, const std::string& text, const auto& details) {
    lines.push_back(fmt::format("{}: {} ({})", kind, text, details.device));
  });
  return lines;
}

std::string fault_line(double since_s, const std::string& text) {
  return fmt::format(R"({{"unix_s":{},"text":"{}","device":"pi3"}})", unix_s() - since_s, text);
}

TEST_CASE("faults are told once, and what they have cost after the first step") {
  const tests::TemporaryFolder folder;
  const auto file = folder / "faults";
  tests::put_bytes(file,
                   fault_line(100, "pi3 vanished") + "\n{}\nnonsense\n" +
                       R"({"unix_s":1e9,"text":"pi3 is back","kind":"return"})");
  FaultsSince faults(file.string(), 21, 20);
  CHECK(faults.stood_s().value() >= 100);
  CHECK(faults.stood_s().value() < 105);
  CHECK(told_by(faults) ==
        std::vector<std::string>{"fault: pi3 vanished (pi3)", "return: pi3 is back ()"});
  CHECK_FALSE(std::filesystem::exists(file));
  const auto cost = faults.recovered(10);
  REQUIRE(cost);
  CHECK(cost->lost_s >= 90);
  CHECK(cost->lost_s < 95);
  CHECK(cost->repeated_steps == 1);
  CHECK_FALSE(faults.recovered(10));
  CHECK(folder.entries() == 0);
}

TEST_CASE("what was lost is counted from the first fault where ranks end again before a step") {
  const tests::TemporaryFolder folder;
  const auto file = folder / "faults";
  tests::put_bytes(file, fault_line(300, "pi3 vanished") + "\n");
  {
    FaultsSince first(file.string(), 21, 20);
    CHECK(told_by(first).size() == 1);
  }
  tests::put_bytes(file, fault_line(100, "pi4 vanished") + "\n");
  FaultsSince second(file.string(), 20, 18);
  CHECK(told_by(second) == std::vector<std::string>{"fault: pi4 vanished (pi3)"});
  const auto cost = second.recovered(0);
  REQUIRE(cost);
  CHECK(cost->lost_s >= 299);
  CHECK(cost->repeated_steps == 3);
  CHECK(folder.entries() == 0);
}

TEST_CASE("what follows after somebody has stopped the run is not lost") {
  const tests::TemporaryFolder folder;
  const auto file = folder / "faults";
  tests::put_bytes(file,
                   fault_line(300, "pi3 vanished") + "\n" +
                       fmt::format(R"({{"unix_s":{},"kind":"stop"}})", unix_s() - 250) + "\n");
  for (int start = 0; start < 2; ++start) {  // the first one ends before a step
    FaultsSince faults(file.string(), 20, 20);
    CHECK(told_by(faults).size() == (start == 0 ? 1U : 0U));
    CHECK(faults.stood_s().value() == doctest::Approx(50).epsilon(0.01));
  }
}

TEST_CASE("without faults there is nothing to tell, whatever the clock says") {
  const tests::TemporaryFolder folder;
  FaultsSince none("", 5, 3);
  CHECK(told_by(none).empty());
  CHECK_FALSE(none.recovered(1));
  CHECK_FALSE(none.stood_s());
  tests::put_bytes(folder / "faults", R"({"unix_s":9e12,"text":"of another clock"})");
  FaultsSince later((folder / "faults").string(), 3, 3);
  CHECK_FALSE(later.stood_s());
  CHECK(told_by(later).size() == 1);
  const auto cost = later.recovered(1);
  REQUIRE(cost);
  CHECK(cost->lost_s == 0);
}

}  // namespace
