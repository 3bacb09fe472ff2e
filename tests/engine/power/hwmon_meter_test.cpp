#include "engine/power/hwmon_meter.h"

#include "tests/support/fake_tree.h"
#include "tests/support/refusals.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::find_hwmon_meter;
using engine::MeterScope;
using engine::PowerMeter;
using tests::FakeTree;
using tests::has;

void write(const FakeTree& tree, int chip, const std::string& file, const std::string& text) {
  tree.write("sys/class/hwmon/hwmon" + std::to_string(chip) + "/" + file, text + "\n");
}

double watts(PowerMeter& meter) {
  const auto reading = meter.read();
  return reading ? reading->value : -1;
}

TEST_CASE("a chip is found by its name, whatever its number, and shows its power") {
  const FakeTree tree;
  write(tree, 0, "name", "cpu_thermal");
  write(tree, 0, "power1_input", "99000000");
  tree.write("sys/class/hwmon/hwmon1/temp1_input", "1\n");  // without a name
  write(tree, 3, "name", "ina226");
  write(tree, 3, "power1_input", "2375000");
  PowerMeter meter = find_hwmon_meter(tree.root()).value();
  CHECK(meter.description().source == "hwmon:ina226");
  CHECK(meter.description().scope == MeterScope::Board);
  CHECK(!meter.description().counts_joules);
  CHECK(watts(meter) == doctest::Approx(2.375));
  write(tree, 3, "power1_input", "3500000");
  CHECK(watts(meter) == doctest::Approx(3.5));
}

TEST_CASE("where a chip has no power it is voltage times current, whichever way that flows") {
  const FakeTree tree;
  write(tree, 0, "name", "powerz");
  write(tree, 0, "in0_input", "5100");
  write(tree, 0, "curr1_input", "-500");
  PowerMeter meter = find_hwmon_meter(tree.root()).value();
  CHECK(watts(meter) == doctest::Approx(2.55));
}

void add_ina3221(const FakeTree& tree) {
  write(tree, 0, "name", "ina3221");
  for (const char* channel : {"1", "2", "3"}) {
    write(tree, 0, std::string("in") + channel + "_input", "5000");
    write(tree, 0, std::string("curr") + channel + "_input", "200");
    write(tree, 0, std::string("in") + channel + "_enable", "1");
  }
  write(tree, 0, "in4_input", "9000");   // of a shunt
  write(tree, 0, "curr4_input", "600");  // the sum
}

TEST_CASE("an INA3221 is the sum of the channels that are connected") {
  const FakeTree tree;
  add_ina3221(tree);
  write(tree, 0, "in2_enable", "0");
  PowerMeter meter = find_hwmon_meter(tree.root()).value();
  CHECK(meter.description().scope == MeterScope::Rails);
  CHECK(watts(meter) == doctest::Approx(2));
}

TEST_CASE("rails that are fed from one that is measured as well are not counted twice") {
  const FakeTree tree;
  add_ina3221(tree);
  write(tree, 0, "in1_label", "VDD_CPU_GPU_CV");
  write(tree, 0, "in2_label", "VDD_IN");
  write(tree, 0, "curr2_input", "700");
  PowerMeter meter = find_hwmon_meter(tree.root()).value();
  CHECK(meter.description().scope == MeterScope::Board);
  CHECK(watts(meter) == doctest::Approx(3.5));
}

TEST_CASE("several chips are summed") {
  const FakeTree tree;
  write(tree, 0, "name", "ina219");
  write(tree, 0, "power1_input", "1000000");
  write(tree, 1, "name", "ina231");
  write(tree, 1, "in1_input", "1000");
  write(tree, 1, "curr1_input", "250");
  PowerMeter meter = find_hwmon_meter(tree.root()).value();
  CHECK(meter.description().source == "hwmon:ina219+ina231");
  CHECK(meter.description().scope == MeterScope::Rails);
  CHECK(watts(meter) == doctest::Approx(1.25));
}

TEST_CASE("a chip that is gone, shows no number or is switched off says so") {
  const FakeTree tree;
  CHECK(!find_hwmon_meter(tree.root()));
  write(tree, 0, "name", "ina219");
  write(tree, 0, "power1_input", "1000000");
  PowerMeter meter = find_hwmon_meter(tree.root()).value();
  write(tree, 0, "power1_input", "");
  CHECK(!meter.read());
  CHECK(has(meter.problem(), "power1_input: \"\" is not a number"));
  tree.make_unreadable("sys/class/hwmon/hwmon0/power1_input");
  CHECK(!meter.read());
  tree.remove("sys/class/hwmon/hwmon0");
  CHECK(!meter.read());
  CHECK(has(meter.problem(), "No such file"));
  add_ina3221(tree);
  for (const char* file : {"in1_enable", "in2_enable", "in3_enable"}) {
    write(tree, 0, file, "0");
  }
  CHECK(has(tests::input_error_of([&] { (void)find_hwmon_meter(tree.root()); }), "switched off"));
}

}  // namespace
