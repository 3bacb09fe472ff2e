#include "engine/monitor/meter_summary.h"

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::energy_text;
using engine::RankMeter;

const RankMeter kMeasured{"hwmon:ina226", false, 0.02, false};
const RankMeter kEstimated{"table:Raspberry Pi 3", true, 0.25, false};
const RankMeter kPlug{"shelly", false, std::nullopt, true};

TEST_CASE("one device: its meter, and how sure that is") {
  CHECK(energy_text(12345, 0, {{kMeasured}}, {"pi1"}) ==
        "energy of the run: 12.3 kJ (hwmon:ina226, +-2 %)");
  CHECK(energy_text(99, 0, {{kEstimated}, {}}, {"pi1", "pi1"}) ==
        "energy of the run: 99.0 J (table:Raspberry Pi 3, estimated, +-25 %)");
}

TEST_CASE("several devices: who has which meter, who has none") {
  CHECK(energy_text(2.5e6, 0, {{kMeasured}, {kEstimated}, {kEstimated}}, {"a", "b", "c"}) ==
        "energy of the run: 2.50 MJ (hwmon:ina226 of a, +-2 %; table:Raspberry Pi 3 of b, c, "
        "estimated, +-25 %)");
  CHECK(energy_text(5, 0, {{kMeasured}, {}}, {"a", "b"}) ==
        "energy of the run: 5.00 J (hwmon:ina226 of a, +-2 %), without b, which has no meter");
}

TEST_CASE("a meter of the whole cluster is the only one that counts") {
  CHECK(energy_text(5, 0, {{kMeasured, kPlug}, {kEstimated}, {}}, {"a", "b", "c"}) ==
        "energy of the run: 5.00 J (shelly of the whole cluster)");
}

TEST_CASE("a time without readings is said") {
  CHECK(energy_text(5, 12.4, {{kMeasured}}, {"a"}) ==
        "energy of the run: 5.00 J (hwmon:ina226, +-2 %), without 12 s in which a meter could not "
        "be read");
}

TEST_CASE("what is assumed of a time without ranks is said") {
  CHECK(energy_text(5, 0, {{kMeasured}}, {"a"}, 7) ==
        "energy of the run: 5.00 J (hwmon:ina226, +-2 %), by the last power while the run stood "
        "still");
}

TEST_CASE("what a rank says of its meters arrives as it was") {
  const std::vector<RankMeter> meters{kMeasured, kEstimated, kPlug};
  CHECK(engine::meters_of_line(engine::to_line(meters)) == meters);
  CHECK(engine::meters_of_line("nonsense").empty());
}

}  // namespace
