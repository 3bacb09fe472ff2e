#include "engine/probe/power_probe.h"

#include <doctest/doctest.h>

#include "engine/ops/loops/threads.h"
#include "engine/system/clock.h"
#include "partitioner/base/errors.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Communicator;
using engine::measure_power;
using engine::MeterQuery;
using engine::PowerMeasurement;
using engine::PowerMeter;

constexpr double kSeconds = 0.1;
constexpr double kRounding = 0.05;  // between the clock of a reading and that of its joules

// That counts: however late a busy machine lets it be read, its joules are right.
engine::MeterDescription counting_meter() {
  engine::MeterDescription meter;
  meter.source = "test";
  meter.counts_joules = true;
  meter.period_s = 0.05;
  return meter;
}

}  // namespace

TEST_CASE("each rank with a meter gets its watts, the others take part") {
  const Communicator world = Communicator::world();
  const double watts = 3.0 + world.rank();
  const bool has_meter = world.rank() % 3 != 2;
  std::optional<PowerMeter> meter;
  if (has_meter) {
    meter.emplace(counting_meter(), [watts](const MeterQuery&) { return watts * engine::now_s(); });
  }
  const PowerMeasurement measured = measure_power(meter, kSeconds, world);
  CHECK(measured.problem.empty());
  CHECK(measured.power.has_value() == has_meter);
  if (measured.power) {
    CHECK(measured.power->source == "test");
    CHECK(!measured.power->estimated);
    CHECK(measured.power->idle_w == doctest::Approx(watts).epsilon(kRounding));
    CHECK(static_cast<int>(measured.power->busy_w.size()) == engine::threads());
    CHECK(measured.power->busy_w.front() == doctest::Approx(watts).epsilon(kRounding));
    CHECK(measured.power->sending_w.has_value() == (world.size() > 1));
    CHECK(measured.power->sending_w.value_or(watts) == doctest::Approx(watts).epsilon(kRounding));
    CHECK(measured.power->receiving_w.value_or(watts) == doctest::Approx(watts).epsilon(kRounding));
  }
}

TEST_CASE("a meter that fails on one rank leaves the others' watts, and says why") {
  const Communicator world = Communicator::world();
  const bool fails = world.rank() == 0;
  const PowerMeter meter(counting_meter(), [fails](const MeterQuery&) -> double {
    if (fails) {
      throw InputError("out of order");
    }
    return 2 * engine::now_s();
  });
  const PowerMeasurement measured = measure_power(meter, kSeconds, world);
  CHECK(measured.power.has_value() == !fails);
  CHECK(measured.problem == (fails ? "out of order" : ""));
}

TEST_CASE("an estimate is told for each number of cores, and takes no time") {
  const Communicator world = Communicator::world();
  engine::MeterDescription description = counting_meter();
  description.estimated = true;
  const PowerMeter meter(description, [](const MeterQuery& query) { return 1 + query.busy_cores; });
  const PowerMeasurement measured = measure_power(meter, 1e9, world);
  REQUIRE(measured.power);
  CHECK(measured.power->estimated);
  CHECK(measured.power->idle_w == 1);
  CHECK(measured.power->busy_w.back() == 1 + engine::threads());
  CHECK(!measured.power->sending_w);
}

TEST_CASE("without a meter nothing is measured") {
  const PowerMeasurement measured = measure_power({}, 1e9, Communicator::world());
  CHECK(!measured.power);
  CHECK(measured.problem.empty());
}
