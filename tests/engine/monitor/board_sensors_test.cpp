#include "engine/monitor/board_sensors.h"

#include <string>

#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::BoardSensors;

// A machine's sys and dev.
class FakeMachine {
 public:
  void put(const std::string& path, const std::string& text) {
    const std::filesystem::path file = folder_ / path;
    std::filesystem::create_directories(file.parent_path());
    tests::put_bytes(file, text);
  }
  [[nodiscard]] BoardSensors sensors() const { return BoardSensors(folder_.path()); }

 private:
  tests::TemporaryFolder folder_;
};

TEST_CASE("a machine without sensors has no temperature, clock or flags") {
  BoardSensors sensors = FakeMachine().sensors();
  CHECK_FALSE(sensors.temperature_c());
  CHECK_FALSE(sensors.clock_hz());
  CHECK_FALSE(sensors.throttled());
}

TEST_CASE("the temperature is the processor's, whatever the order of sensors") {
  FakeMachine machine;
  machine.put("sys/class/thermal/thermal_zone0/type", "acpitz\n");
  machine.put("sys/class/thermal/thermal_zone0/temp", "27800\n");
  CHECK(machine.sensors().temperature_c() == doctest::Approx(27.8));
  machine.put("sys/class/thermal/thermal_zone1/type", "cpu-thermal\n");
  machine.put("sys/class/thermal/thermal_zone1/temp", "61234\n");
  machine.put("sys/class/hwmon/hwmon0/name", "nvme\n");
  machine.put("sys/class/hwmon/hwmon0/temp1_input", "90000\n");
  CHECK(machine.sensors().temperature_c() == doctest::Approx(61.234));
}

TEST_CASE("a processor's sensor is found where there are no thermal zones, a disk's is none") {
  FakeMachine machine;
  machine.put("sys/class/hwmon/hwmon0/name", "nvme\n");
  machine.put("sys/class/hwmon/hwmon0/temp1_input", "90000\n");
  CHECK_FALSE(machine.sensors().temperature_c());
  machine.put("sys/class/hwmon/hwmon1/name", "k10temp\n");
  machine.put("sys/class/hwmon/hwmon1/temp1_input", "55000\n");
  CHECK(machine.sensors().temperature_c() == doctest::Approx(55));
}

TEST_CASE("the clock is the mean of the processors that tell theirs") {
  FakeMachine machine;
  machine.put("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "1400000\n");
  machine.put("sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "600000\n");
  machine.put("sys/devices/system/cpu/cpu2/online", "0\n");
  machine.put("sys/devices/system/cpu/cpufreq/boost", "1\n");
  BoardSensors sensors = machine.sensors();
  CHECK(sensors.clock_hz() == doctest::Approx(1e9));
  machine.put("sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "");  // switched off
  CHECK(sensors.clock_hz() == doctest::Approx(1.4e9));
}

TEST_CASE("what a sensor shows that cannot be is left out, with one problem of each kind") {
  FakeMachine machine;
  machine.put("sys/class/thermal/thermal_zone0/type", "cpu-thermal\n");
  machine.put("sys/class/thermal/thermal_zone0/temp", "-274000\n");
  machine.put("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "-1\n");
  BoardSensors sensors = machine.sensors();
  for (int look = 0; look < 3; ++look) {
    CHECK_FALSE(sensors.temperature_c());
    CHECK_FALSE(sensors.clock_hz());
  }
  CHECK(sensors.new_problems().size() == 2);
  CHECK(sensors.new_problems().empty());
  machine.put("sys/class/thermal/thermal_zone0/temp", "45000\n");
  CHECK(sensors.temperature_c() == doctest::Approx(45));
}

TEST_CASE("the firmware's flags are hexadecimal, and unknown where they are garbage") {
  FakeMachine machine;
  const std::string file = "sys/devices/platform/soc/soc:firmware/get_throttled";
  machine.put(file, "50005\n");
  const BoardSensors sensors = machine.sensors();
  CHECK(sensors.throttled() == 0x50005);
  machine.put(file, "0\n");
  CHECK(sensors.throttled() == 0);
  machine.put(file, "?\n");
  CHECK_FALSE(sensors.throttled());
}

TEST_CASE("a mailbox that is no device says nothing") {
  FakeMachine machine;
  machine.put("dev/vcio", "not a device");
  CHECK_FALSE(machine.sensors().throttled());
}

}  // namespace
