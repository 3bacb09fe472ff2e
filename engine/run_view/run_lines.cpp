#include "engine/run_view/run_lines.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "engine/run_view/run_limits.h"

namespace tessera::engine {

namespace {

// No longer than any of ours is, in whole letters of UTF-8.
std::string short_text(std::string_view text, std::size_t most_bytes) {
  std::size_t end = std::min(text.size(), most_bytes);
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) {
    --end;
  }
  return std::string(text.substr(0, end));
}
constexpr std::size_t kMostName = 256;
constexpr std::size_t kMostText = 4096;

// Rank 0 has the meter of the whole cluster, in place of one of its own or beside that.
void add_energy(const DeviceLine& line, RunDevice& device) {
  if (!known(line.energy_j)) {
    return;
  }
  device.energy_j = line.energy_j;
  if (const double cluster_j = line.energy_of_cluster_j(); known(cluster_j)) {
    device.cluster_energy_j = cluster_j;
  }
}

// An event that tells of a fault or of going on after some.
void count_fault(const RunEvent& event, RunFaults& faults) {
  constexpr double kMostSeconds = 1e12;
  if (event.kind == "fault") {
    ++faults.faults;
  } else if (event.kind == "recovery") {
    faults.lost_s += event.lost_s >= 0 && event.lost_s <= kMostSeconds ? event.lost_s : 0;
    faults.repeated_steps += event.repeated_steps.value_or(0);
  }
}

}  // namespace

bool add_metrics_line(const nlohmann::ordered_json& line, RunData& data) {
  auto record = metrics_record(line);
  if (!record) {
    return false;
  }
  if (auto* const test = std::get_if<EvaluationRecord>(&*record)) {
    data.finds_objects = data.finds_objects || test->score == kDetectorScore;
    data.evaluations.push_back(std::move(*test));
  } else if (auto* const step = std::get_if<StepRecord>(&*record)) {
    data.steps.push_back(std::move(*step));
  }
  return true;
}

bool add_device_line(const nlohmann::ordered_json& json, RunData& data) {
  const auto line = device_line(json);
  if (!line) {
    return false;
  }
  RunDevice& device = data.devices[static_cast<int>(line->rank)];
  if (line->host != device.host && !line->host.empty()) {
    device.host = short_text(line->host, kMostName);
  }
  if (line->power_source != device.power_source && !line->power_source.empty()) {
    device.power_source = short_text(line->power_source, kMostName);
  }
  add_energy(*line, device);
  add_sample(data, device, *line);
  return true;
}

bool add_event_line(const nlohmann::ordered_json& line, RunData& data) {
  auto event = run_event(line);
  if (!event) {
    return false;
  }
  event->kind = short_text(event->kind, kMostName);
  event->text = short_text(event->text, kMostText);
  event->device = short_text(event->device, kMostName);
  count_fault(*event, data.faults);
  data.events.push_back(std::move(*event));
  return true;
}

bool add_timing_line(const nlohmann::ordered_json& line, RunData& data) {
  const auto timing = step_timing(line);
  if (timing) {
    (timing->predicted ? data.predicted : data.timings).push_back(*timing);
  }
  return timing.has_value();
}

}  // namespace tessera::engine
