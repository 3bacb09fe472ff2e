#include "engine/monitor/throttle_watch.h"

#include <string>

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::DeviceSample;
using engine::ThrottleWatch;

std::string told(ThrottleWatch& watch, double t_s, double flags) {
  DeviceSample sample;
  sample.t_s = t_s;
  sample.throttled = flags;
  sample.temperature_c = 82.4;
  sample.clock_hz = 6e8;
  return watch.look(sample).value_or("");
}

TEST_CASE("throttling is told when it begins, when a flag is new, and when it has been over") {
  ThrottleWatch watch;
  CHECK(told(watch, 0, 0x50000) == "");  // was, once
  CHECK(told(watch, 1, engine::kUnknown) == "");
  CHECK(told(watch, 2, 0x4) == "slowed down: throttled; 82 °C; 600 MHz");
  CHECK(told(watch, 3, 0x4) == "");
  CHECK(told(watch, 4, 0x5) == "slowed down: low voltage, throttled; 82 °C; 600 MHz");
  CHECK(told(watch, 5, 0) == "");
  CHECK(told(watch, 6, 0x4) == "");  // it flickers
  CHECK(told(watch, 15, 0) == "");
  CHECK(told(watch, 16, 0) ==
        "no longer slowed down (low voltage, throttled), after 4 s; 82 °C; 600 MHz");
  CHECK(told(watch, 17, 0) == "");
  CHECK(told(watch, 18, 0x8) == "slowed down: at the soft limit of temperature; 82 °C; 600 MHz");
}

}  // namespace
