#include "engine/power/file_meter.h"

#include <fstream>
#include <thread>

#include "tests/support/refusals.h"
#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "engine/power/power_sampler.h"
#include "engine/system/clock.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::PowerMeter;
using tests::has;

// A folder with one file.
class File {
 public:
  explicit File(const std::string& text) { std::ofstream(path()) << text; }
  [[nodiscard]] std::filesystem::path path() const { return folder_.path() / "curve"; }

 private:
  tests::TemporaryFolder folder_;
};

std::string refusal_of_file(const std::string& text) {
  const File file(text);
  return tests::input_error_of([&] { (void)engine::file_meter(file.path()); });
}

TEST_CASE("a meter shows what its file says at this time") {
  const File file("# a curve\n0 2.5\n1000 2.5 # as before\n");
  PowerMeter meter = engine::file_meter(file.path());
  CHECK(meter.description().source == "file");
  CHECK(!meter.description().counts_joules);
  const double before = engine::now_s();
  const auto reading = meter.read();
  REQUIRE(reading);
  CHECK(reading->value == doctest::Approx(2.5));
  CHECK(reading->time_s >= before);
  CHECK(reading->time_s <= engine::now_s());
}

TEST_CASE("a meter of a file fails where the file says so, and says why") {
  const File file("-1 fail\n1000 3\n");
  PowerMeter meter = engine::file_meter(file.path());
  CHECK(!meter.read());
  CHECK(has(meter.problem(), "curve: there is no reading at this time"));
}

TEST_CASE("files that are no curves are refused with the line") {
  CHECK(has(refusal_of_file("0 1\n0 2\n"), "curve:2: \"0 2\" is not"));
  CHECK(has(refusal_of_file("0 watts\n"), "curve:1: "));
  CHECK(has(refusal_of_file("0 1 2\n"), "curve:1: "));
  CHECK(has(refusal_of_file("0\n"), "curve:1: "));
  CHECK(has(refusal_of_file("0 nan\n"), "curve:1: "));
  CHECK(has(refusal_of_file("period 0\n0 1\n"), "curve:1: "));
  CHECK(has(refusal_of_file("joules\n"), "has no readings"));
  CHECK(has(tests::input_error_of([] { (void)engine::file_meter("/nowhere/curve"); }),
            "/nowhere/curve"));
}

// Waits, in any case for less than a minute, until the sampler's state is as wanted.
template <class Wanted>
engine::PowerState state_when(const engine::PowerSampler& sampler, const Wanted& wanted) {
  constexpr double kPatience_s = 60;
  const double end = engine::now_s() + kPatience_s;
  while (!wanted(sampler.state()) && engine::now_s() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return sampler.state();
}

TEST_CASE("energy of a counter that is sampled is what it counted") {
  const File file("joules\nperiod 0.005\n0 100\n0.2 150\n");
  engine::PowerSampler sampler(engine::file_meter(file.path()));
  const auto state =
      state_when(sampler, [](const engine::PowerState& now) { return now.total.power_w == 0.0; });
  REQUIRE(state.last);
  CHECK(state.last->value == 150);
  // The first reading may be late on a busy machine.
  CHECK(state.total.energy_j > 0);
  CHECK(state.total.energy_j <= 50);
  CHECK(state.failures == 0);
}

TEST_CASE("a meter that fails in the middle leaves a gap, and says why until it is back") {
  const File file("period 0.005\n0 2\n0.1 fail\n0.4 2\n");
  engine::PowerSampler sampler(engine::file_meter(file.path()));
  (void)state_when(sampler, [](const engine::PowerState& now) { return now.failures > 0; });
  const engine::PowerState failing = sampler.state();
  CHECK(has(failing.problem, "no reading at this time"));
  CHECK(!failing.total.power_w);
  const engine::PowerState after = state_when(
      sampler, [](const engine::PowerState& now) { return now.problem.empty() && now.last; });
  CHECK(after.problem.empty());
  CHECK(after.failures > 0);
  CHECK(after.total.power_w == doctest::Approx(2));
  CHECK(after.total.energy_j == doctest::Approx(2 * after.total.measured_s));
}

}  // namespace
