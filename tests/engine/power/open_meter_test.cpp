#include "engine/power/open_meter.h"

#include "tests/support/fake_tree.h"
#include "tests/support/refusals.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::MeterPlaces;
using engine::open_meter;
using engine::OpenedMeter;
using engine::parse_meter;
using tests::FakeTree;
using tests::has;

constexpr double kOpeningLimit_s = 60;

OpenedMeter opened(const std::string& spec, const FakeTree& tree) {
  return open_meter(parse_meter(spec), MeterPlaces{tree.root(), kOpeningLimit_s, kOpeningLimit_s});
}

std::string refusal_to_open(const std::string& spec, const FakeTree& tree) {
  return tests::input_error_of([&] { (void)opened(spec, tree); });
}

std::string source_of(const OpenedMeter& opened) {
  return opened.meter ? opened.meter->description().source : "";
}

void add_rapl(const FakeTree& tree, const std::string& energy_uj) {
  tree.write("sys/class/powercap/intel-rapl:0/name", "package-0\n");
  tree.write("sys/class/powercap/intel-rapl:0/max_energy_range_uj", "262143328850\n");
  tree.write("sys/class/powercap/intel-rapl:0/energy_uj", energy_uj);
}

TEST_CASE("by default a machine's best meter is taken: RAPL, a sensor, the table, or none") {
  const FakeTree tree;
  CHECK(source_of(opened("auto", tree)).empty());
  CHECK(opened("auto", tree).notes.empty());
  tree.write("proc/device-tree/model", std::string("Raspberry Pi 3 Model B Rev 1.2\0", 31));
  CHECK(source_of(opened("auto", tree)) == "table:Raspberry Pi 3 Model B");
  CHECK(opened("auto", tree).meter->description().estimated);
  tree.write("sys/class/hwmon/hwmon0/name", "ina219\n");
  tree.write("sys/class/hwmon/hwmon0/power1_input", "2000000\n");
  CHECK(source_of(opened("auto", tree)) == "hwmon:ina219");
  add_rapl(tree, "1000\n");
  CHECK(source_of(opened("auto", tree)) == "rapl");
  CHECK(source_of(opened("none", tree)).empty());
}

TEST_CASE("a meter that is there but does not work is passed over with a note") {
  const FakeTree tree;
  add_rapl(tree, "none\n");
  tree.write("sys/class/hwmon/hwmon0/name", "ina219\n");
  tree.write("sys/class/hwmon/hwmon0/power1_input", "off\n");
  const OpenedMeter nothing = opened("auto", tree);
  CHECK(!nothing.meter);
  REQUIRE(nothing.notes.size() == 2);
  CHECK(has(nothing.notes[0], "energy_uj: \"none\" is not a number"));
  CHECK(has(nothing.notes[1], "power1_input: \"off\" is not a number"));
}

TEST_CASE("a meter that was asked for by name has to work") {
  const FakeTree tree;
  CHECK(has(refusal_to_open("rapl", tree), "--meter rapl: this machine has no such meter"));
  CHECK(has(refusal_to_open("hwmon", tree), "no such meter"));
  CHECK(has(refusal_to_open("pmic", tree), "no such meter"));
  CHECK(has(refusal_to_open("table", tree), "name a board, such as table:pi3b"));
  CHECK(has(refusal_to_open("table:pi3", tree), "expected pi3b+, pi3b"));
  CHECK(has(refusal_to_open("command:exit 1", tree), "--meter command:exit 1: the command"));
  CHECK(has(refusal_to_open("file:/nowhere", tree), "/nowhere"));
  CHECK(
      has(refusal_to_open("pi1=shelly:ftp://x", tree), "--meter pi1=shelly:ftp://x: \"ftp://x\""));
  add_rapl(tree, "none\n");
  CHECK(has(refusal_to_open("rapl", tree), "not a number"));
}

TEST_CASE("a meter of the whole cluster says so") {
  const FakeTree tree;
  CHECK(opened("cluster=command:echo 20", tree).meter->description().scope ==
        engine::MeterScope::Cluster);
  CHECK(opened("command:echo 20", tree).meter->description().scope == engine::MeterScope::Board);
}

TEST_CASE("the table is linear in busy cores, from idle to all") {
  const FakeTree tree;
  auto meter = opened("table:pi4b", tree).meter;
  REQUIRE(meter);
  CHECK(meter->description().relative_error == doctest::Approx(0.25));
  CHECK(meter->read({0})->value == doctest::Approx(2.15));
  CHECK(meter->read({2})->value == doctest::Approx((2.15 + 5.7) / 2));
  CHECK(meter->read({4})->value == doctest::Approx(5.7));
  CHECK(meter->read({9})->value == doctest::Approx(5.7));
}

TEST_CASE("a board is known by how the device tree begins, longer names first") {
  const FakeTree tree;
  const auto source_for = [&](const std::string& model) {
    tree.write("proc/device-tree/model", model);
    return source_of(opened("auto", tree));
  };
  CHECK(source_for("Raspberry Pi 3 Model B Plus Rev 1.3") == "table:Raspberry Pi 3 Model B Plus");
  CHECK(source_for("Raspberry Pi 3 Model B Rev 1.2") == "table:Raspberry Pi 3 Model B");
  CHECK(source_for("Raspberry Pi 400 Rev 1.0") == "table:Raspberry Pi 400");
  CHECK(source_for("Raspberry Pi Zero 2 W Rev 1.0").empty());
  CHECK(source_for("").empty());
}

}  // namespace
