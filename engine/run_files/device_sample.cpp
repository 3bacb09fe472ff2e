#include "engine/run_files/device_sample.h"

#include "engine/run_files/record_fields.h"

namespace tessera::engine {

static auto fields_of(const DeviceLine& /*line*/) {
  return std::tuple{Field("t_s", &DeviceLine::t_s, 3),
                    Field("rank", &DeviceLine::rank),
                    Field("host", &DeviceLine::host, Absent::Null),
                    Field("step", &DeviceLine::step),
                    Field("cpu_user_s", &DeviceLine::cpu_user_s, 4),
                    Field("cpu_system_s", &DeviceLine::cpu_system_s, 4),
                    Field("wait_s", &DeviceLine::wait_s, 4),
                    Field("rss_bytes", &DeviceLine::rss_bytes, 0),
                    Field("free_bytes", &DeviceLine::free_bytes, 0),
                    Field("rx_bytes", &DeviceLine::rx_bytes, 0),
                    Field("tx_bytes", &DeviceLine::tx_bytes, 0),
                    Field("temperature_c", &DeviceLine::temperature_c, 1),
                    Field("clock_hz", &DeviceLine::clock_hz, 0),
                    Field("throttled", &DeviceLine::throttled, 0),
                    Field("power_w", &DeviceLine::power_w, 3),
                    Field("power_source", &DeviceLine::power_source, Absent::Null),
                    Field("rx_packets", &DeviceLine::rx_packets, 0),
                    Field("tx_packets", &DeviceLine::tx_packets, 0),
                    Field("energy_j", &DeviceLine::energy_j, 3),
                    Field("cluster_power_w", &DeviceLine::cluster_power_w, 3, Absent::LeftOut),
                    Field("cluster_energy_j", &DeviceLine::cluster_energy_j, 3, Absent::LeftOut)};
}

bool DeviceLine::has_cluster_alone() const {
  return power_source.ends_with(kClusterSuffix);
}

std::string line_of(const DeviceLine& line) {
  return record_text(line);
}

std::optional<DeviceLine> device_line(const RecordJson& line) {
  auto result = record_of<DeviceLine>(line);
  const bool whole = has_count(line, "rank", kMostRanks) && known(result.t_s);
  return whole ? std::optional(std::move(result)) : std::nullopt;
}

}  // namespace tessera::engine
