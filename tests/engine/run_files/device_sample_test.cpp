#include "engine/run_files/device_sample.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

std::vector<std::string> keys_of(const std::string& line) {
  std::vector<std::string> keys;
  const auto json = nlohmann::ordered_json::parse(line);
  for (const auto& [key, value] : json.items()) {
    keys.push_back(key);
  }
  return keys;
}

const std::vector<std::string>& usual_keys() {
  static const std::vector<std::string> keys{"t_s",
                                             "rank",
                                             "host",
                                             "step",
                                             "cpu_user_s",
                                             "cpu_system_s",
                                             "wait_s",
                                             "rss_bytes",
                                             "free_bytes",
                                             "rx_bytes",
                                             "tx_bytes",
                                             "temperature_c",
                                             "clock_hz",
                                             "throttled",
                                             "power_w",
                                             "power_source",
                                             "rx_packets",
                                             "tx_packets",
                                             "energy_j"};
  return keys;
}

TEST_CASE("a line has all keys in their order, and null where something is unknown") {
  engine::DeviceLine sample;
  sample.t_s = 12.3456;
  sample.step = 7;
  sample.rss_bytes = 9007199254740991.0;
  sample.rank = 3;
  sample.host = "pi3";
  const std::string line = engine::line_of(sample);
  CHECK(keys_of(line) == usual_keys());
  const auto json = nlohmann::json::parse(line);
  CHECK(json["t_s"] == 12.346);
  CHECK(json["rank"] == 3);
  CHECK(json["host"] == "pi3");
  CHECK(json["step"] == 7);
  CHECK(json["rss_bytes"] == 9007199254740991);
  for (const char* key : {"cpu_user_s", "wait_s", "temperature_c", "power_w", "power_source"}) {
    CHECK(json[key].is_null());
  }
}

TEST_CASE("any bytes of a host's name make a line of JSON") {
  engine::DeviceLine sample;
  sample.host = "a\"b\\\n\xff";
  const std::string line = engine::line_of(sample);
  CHECK(line.find('\n') == std::string::npos);
  CHECK(nlohmann::json::parse(line)["host"].get<std::string>().compare(0, 4, "a\"b\\") == 0);
}

}  // namespace
