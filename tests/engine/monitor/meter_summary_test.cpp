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

TEST_CASE("a meter of the whole cluster stands for the board's only where the board has none") {
  engine::DeviceSample sample;
  sample.cluster_power_w = 21;
  sample.cluster_energy_j = 210;
  const engine::DeviceLine alone = engine::measured_line(sample, {kPlug});
  CHECK(alone.power_source == "shelly (cluster)");
  CHECK(alone.power_w == 21);
  CHECK(alone.energy_j == 210);
  CHECK(!engine::known(alone.cluster_power_w));
  CHECK(engine::line_of(alone).find("cluster_power_w") == std::string::npos);
  sample.power_w = 3;
  sample.energy_j = 30;
  const engine::DeviceLine both = engine::measured_line(sample, {kMeasured, kPlug});
  CHECK(both.power_source == "hwmon:ina226");
  CHECK(both.power_w == 3);
  CHECK(both.energy_j == 30);
  CHECK(both.cluster_power_w == 21);
  CHECK(both.cluster_energy_j == 210);
}

}  // namespace
