#include "engine/monitor/monitor_sample.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::LineTexts;
using engine::MonitorSample;

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
  MonitorSample sample;
  sample.t_s = 12.3456;
  sample.step = 7;
  sample.rss_bytes = 9007199254740991.0;
  const std::string line = engine::line_of(sample, 3, {.host = engine::json_string("pi3")});
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
  const std::string line = engine::line_of({}, 0, {.host = engine::json_string("a\"b\\\n\xff")});
  CHECK(line.find('\n') == std::string::npos);
  CHECK(nlohmann::json::parse(line)["host"].get<std::string>().compare(0, 4, "a\"b\\") == 0);
}

TEST_CASE("a meter of the whole cluster stands for the board's only where the board has none") {
  MonitorSample sample;
  sample.cluster_power_w = 21;
  sample.cluster_energy_j = 210;
  LineTexts texts{.power_source = engine::json_string("shelly (cluster)"),
                  .has_cluster_meter = true};
  const auto alone = nlohmann::json::parse(engine::line_of(sample, 0, texts));
  CHECK(alone["power_w"] == 21);
  CHECK(alone["energy_j"] == 210);
  CHECK_FALSE(alone.contains("cluster_power_w"));
  sample.power_w = 3;
  sample.energy_j = 30;
  texts.has_board_meter = true;
  const auto both = nlohmann::json::parse(engine::line_of(sample, 0, texts));
  CHECK(both["power_w"] == 3);
  CHECK(both["energy_j"] == 30);
  CHECK(both["cluster_power_w"] == 21);
  CHECK(both["cluster_energy_j"] == 210);
}

}  // namespace
