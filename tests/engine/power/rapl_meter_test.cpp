#include "engine/power/rapl_meter.h"

#include "tests/support/fake_tree.h"
#include "tests/support/refusals.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::find_rapl_meter;
using engine::PowerMeter;
using tests::has;

// The powercap folder of a machine with two processors.
class Zones {
 public:
  Zones() {
    add("intel-rapl:0", "package-0", 1000);
    add("intel-rapl:1", "package-1", 2000);
    // Parts of packages, and packages or all of the machine by another way.
    add("intel-rapl:0:0", "core", 70000);
    add("intel-rapl:0:1", "dram", 80000);
    add("intel-rapl:2", "psys", 90000);
    add("intel-rapl-mmio:0", "package-0", 60000);
    tree_.write("sys/class/powercap/intel-rapl/enabled", "1\n");
  }

  void add(const std::string& zone, const std::string& name, long energy_uj) const {
    tree_.write(file(zone, "name"), name + "\n");
    tree_.write(file(zone, "max_energy_range_uj"), "5000000\n");
    set(zone, energy_uj);
  }
  void set(const std::string& zone, long energy_uj) const {
    tree_.write(file(zone, "energy_uj"), std::to_string(energy_uj) + "\n");
  }
  [[nodiscard]] const tests::FakeTree& tree() const { return tree_; }
  [[nodiscard]] static std::string file(const std::string& zone, const std::string& name) {
    return "sys/class/powercap/" + zone + "/" + name;
  }
  [[nodiscard]] PowerMeter meter() const { return find_rapl_meter(tree_.root()).value(); }

 private:
  tests::FakeTree tree_;
};

double joules(PowerMeter& meter) {
  const auto reading = meter.read();
  return reading ? reading->value : -1;
}

TEST_CASE("RAPL counts the packages of a machine once each, and nothing that they contain") {
  const Zones zones;
  PowerMeter meter = zones.meter();
  CHECK(meter.description().source == "rapl");
  CHECK(meter.description().counts_joules);
  CHECK(meter.description().scope == engine::MeterScope::Processor);
  const double start = joules(meter);
  for (const char* zone :
       {"intel-rapl:0:0", "intel-rapl:0:1", "intel-rapl:2", "intel-rapl-mmio:0"}) {
    zones.set(zone, 4000000);
  }
  CHECK(joules(meter) == start);
  zones.set("intel-rapl:0", 501000);
  zones.set("intel-rapl:1", 252000);
  CHECK(joules(meter) - start == doctest::Approx(0.75));
}

TEST_CASE("a RAPL counter that starts again from 0 has counted on") {
  const Zones zones;
  PowerMeter meter = zones.meter();
  const double start = joules(meter);
  zones.set("intel-rapl:0", 4900000);
  CHECK(joules(meter) - start == doctest::Approx(4.899));
  zones.set("intel-rapl:0", 200000);  // 0.1 J to the end of the range, 0.2 J after it
  CHECK(joules(meter) - start == doctest::Approx(5.199));
}

TEST_CASE("a RAPL counter that begins anew far from its end has not counted its whole range") {
  Zones zones;
  zones.tree().write(Zones::file("intel-rapl:0", "max_energy_range_uj"), "262143328850\n");
  zones.set("intel-rapl:0", 1000000000);
  PowerMeter meter = zones.meter();
  const double start = joules(meter);
  zones.set("intel-rapl:0", 1004000000);
  CHECK(joules(meter) - start == doctest::Approx(4));
  zones.set("intel-rapl:0", 2000000);
  const auto anew = meter.read();
  CHECK(anew->restarted);
  CHECK(anew->value - start == doctest::Approx(4));
  zones.set("intel-rapl:0", 5000000);
  CHECK(joules(meter) - start == doctest::Approx(7));
}

TEST_CASE("a RAPL counter that cannot be read for a while loses no energy") {
  const Zones zones;
  PowerMeter meter = zones.meter();
  const double start = joules(meter);
  zones.set("intel-rapl:0", 101000);
  zones.tree().make_unreadable(Zones::file("intel-rapl:1", "energy_uj"));
  CHECK(!meter.read());
  CHECK(has(meter.problem(), "intel-rapl:1/energy_uj: cannot be read"));
  zones.tree().remove(Zones::file("intel-rapl:1", "energy_uj"));
  zones.set("intel-rapl:1", 302000);
  CHECK(joules(meter) - start == doctest::Approx(0.4));
}

TEST_CASE("a machine without RAPL has no such meter, one that hides it says what to do") {
  const tests::FakeTree empty;
  CHECK(!find_rapl_meter(empty.root()));
  const Zones zones;
  zones.tree().make_unreadable(Zones::file("intel-rapl:0", "energy_uj"));
  CHECK(has(tests::input_error_of([&] { (void)zones.meter(); }), "run as root, or as root: chmod"));
  zones.tree().remove(Zones::file("intel-rapl:0", "energy_uj"));
  zones.tree().write(Zones::file("intel-rapl:0", "energy_uj"), "many\n");
  CHECK(has(tests::input_error_of([&] { (void)zones.meter(); }), "\"many\" is not a number"));
}

}  // namespace
