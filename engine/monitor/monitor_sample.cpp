#include "engine/monitor/monitor_sample.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tessera::engine {

namespace {

// With `digits` behind the point.
std::string number(double value, int digits) {
  return std::isfinite(value) ? fmt::format("{:.{}f}", value, digits) : "null";
}

}  // namespace

std::string json_string(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string line_of(const MonitorSample& sample, int rank, const LineTexts& texts) {
  const bool cluster_for_board = texts.has_cluster_meter && !texts.has_board_meter;
  const double power_w = cluster_for_board ? sample.cluster_power_w : sample.power_w;
  const double energy_j = cluster_for_board ? sample.cluster_energy_j : sample.energy_j;
  std::string line = fmt::format(R"({{"t_s":{:.3f},"rank":{},"host":{},"step":{},)",
                                 sample.t_s,
                                 rank,
                                 texts.host,
                                 sample.step);
  const auto add = [&](const char* key, double value, int digits) {
    line += fmt::format(R"("{}":{},)", key, number(value, digits));
  };
  add("cpu_user_s", sample.cpu_user_s, 4);
  add("cpu_system_s", sample.cpu_system_s, 4);
  add("wait_s", sample.wait_s, 4);
  add("rss_bytes", sample.rss_bytes, 0);
  add("free_bytes", sample.free_bytes, 0);
  add("rx_bytes", sample.rx_bytes, 0);
  add("tx_bytes", sample.tx_bytes, 0);
  add("temperature_c", sample.temperature_c, 1);
  add("clock_hz", sample.clock_hz, 0);
  add("throttled", sample.throttled, 0);
  add("power_w", power_w, 3);
  line += fmt::format(R"("power_source":{},)", texts.power_source);
  add("rx_packets", sample.rx_packets, 0);
  add("tx_packets", sample.tx_packets, 0);
  add("energy_j", energy_j, 3);
  if (texts.has_cluster_meter && texts.has_board_meter) {
    add("cluster_power_w", sample.cluster_power_w, 3);
    add("cluster_energy_j", sample.cluster_energy_j, 3);
  }
  line.back() = '}';
  return line;
}

}  // namespace tessera::engine
