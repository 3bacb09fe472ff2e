#include "engine/run_view/run_lines.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

#include "engine/run_view/run_limits.h"

namespace tessera::engine {

namespace {

// More ranks than there are in any run: a larger number is damage.
constexpr double kMostRanks = 100'000;
constexpr double kMostSteps = 1e15;

template <class Record>
struct Member {
  const char* key;
  double Record::*number;
};

constexpr Member<StepRecord> kStepMembers[] = {{"t_s", &StepRecord::t_s},
                                               {"loss", &StepRecord::loss},
                                               {"learning_rate", &StepRecord::learning_rate},
                                               {"step_s", &StepRecord::step_s},
                                               {"images_per_s", &StepRecord::images_per_s},
                                               {"load_s", &StepRecord::load_s},
                                               {"forward_s", &StepRecord::forward_s},
                                               {"backward_s", &StepRecord::backward_s},
                                               {"update_s", &StepRecord::update_s},
                                               {"exchange_s", &StepRecord::exchange_s},
                                               {"energy_j", &StepRecord::energy_j}};
constexpr Member<EvaluationRecord> kEvaluationMembers[] = {
    {"epoch", &EvaluationRecord::epoch},
    {"accuracy", &EvaluationRecord::accuracy},
    {"map50", &EvaluationRecord::accuracy},
    {"test_loss", &EvaluationRecord::test_loss},
    {"test_pictures", &EvaluationRecord::test_pictures},
    {"energy_j", &EvaluationRecord::energy_j},
    {"run_energy_j", &EvaluationRecord::run_energy_j}};
constexpr Member<DeviceSample> kDeviceMembers[] = {{"t_s", &DeviceSample::t_s},
                                                   {"cpu_user_s", &DeviceSample::cpu_user_s},
                                                   {"cpu_system_s", &DeviceSample::cpu_system_s},
                                                   {"wait_s", &DeviceSample::wait_s},
                                                   {"rss_bytes", &DeviceSample::rss_bytes},
                                                   {"free_bytes", &DeviceSample::free_bytes},
                                                   {"rx_bytes", &DeviceSample::rx_bytes},
                                                   {"tx_bytes", &DeviceSample::tx_bytes},
                                                   {"rx_packets", &DeviceSample::rx_packets},
                                                   {"tx_packets", &DeviceSample::tx_packets},
                                                   {"temperature_c", &DeviceSample::temperature_c},
                                                   {"clock_hz", &DeviceSample::clock_hz},
                                                   {"throttled", &DeviceSample::throttled},
                                                   {"power_w", &DeviceSample::power_w},
                                                   {"energy_j", &DeviceSample::energy_j}};
constexpr Member<StepTiming> kTimingMembers[] = {{"t_s", &StepTiming::t_s},
                                                 {"step_s", &StepTiming::step_s},
                                                 {"loading_s", &StepTiming::loading_s},
                                                 {"forward_s", &StepTiming::forward_s},
                                                 {"backward_s", &StepTiming::backward_s},
                                                 {"update_s", &StepTiming::update_s},
                                                 {"exchanging_s", &StepTiming::exchanging_s},
                                                 {"waiting_s", &StepTiming::waiting_s}};

// Members come in the order of the table, mostly: the search goes on from the last one found.
template <class Record, std::size_t size>
Record record_of(const FlatJson& line, const Member<Record> (&table)[size]) {
  Record record;
  std::size_t next = 0;
  for (const JsonMember& member : line.members()) {
    for (std::size_t i = 0; member.kind == JsonMember::Kind::Number && i < size; ++i) {
      const Member<Record>& candidate = table[(next + i) % size];
      if (member.key == candidate.key) {
        record.*candidate.number = member.number;
        next = (next + i + 1) % size;
        break;
      }
    }
  }
  return record;
}

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

bool is_count(double number, double most) {
  return number >= 0 && number <= most;
}

// Rank 0 has the meter of the whole cluster, in place of one of its own or beside that.
void add_energy(const FlatJson& line, const DeviceSample& sample, RunDevice& device) {
  constexpr std::string_view kOfCluster = " (cluster)";
  if (!known(sample.energy_j)) {
    return;
  }
  const double cluster_j = line.number("cluster_energy_j");
  device.energy_j = sample.energy_j;
  if (known(cluster_j)) {
    device.cluster_energy_j = cluster_j;
  } else if (line.text("power_source").ends_with(kOfCluster)) {
    device.cluster_energy_j = sample.energy_j;
  }
}

// An event that tells of a fault or of going on after some.
void count_fault(const FlatJson& line, const std::string& kind, RunFaults& faults) {
  constexpr double kMostSeconds = 1e12;
  if (kind == "fault") {
    ++faults.faults;
  } else if (kind == "recovery") {
    const double lost_s = line.number("lost_s");
    const double repeated = line.number("repeated_steps");
    faults.lost_s += is_count(lost_s, kMostSeconds) ? lost_s : 0;
    faults.repeated_steps += is_count(repeated, kMostSteps) ? static_cast<Index>(repeated) : 0;
  }
}

}  // namespace

bool add_metrics_line(const FlatJson& line, RunData& data) {
  const double step = line.number("step");
  if (!is_count(step, kMostSteps)) {
    return false;
  }
  bool evaluation = false;
  bool training = false;
  for (const JsonMember& member : line.members()) {
    data.finds_objects = data.finds_objects || member.key == "map50";
    evaluation = evaluation || member.key == "accuracy" || member.key == "test_loss";
    training = training || member.key == "loss";
  }
  if (evaluation) {
    EvaluationRecord record = record_of(line, kEvaluationMembers);
    record.step = static_cast<Index>(step);
    data.evaluations.push_back(record);
  } else if (training) {
    StepRecord record = record_of(line, kStepMembers);
    record.step = static_cast<Index>(step);
    data.steps.push_back(record);
  }
  return true;
}

bool add_device_line(const FlatJson& line, RunData& data) {
  const double rank = line.number("rank");
  DeviceSample sample = record_of(line, kDeviceMembers);
  if (!is_count(rank, kMostRanks) || !known(sample.t_s)) {
    return false;
  }
  const double step = line.number("step");
  sample.rank = static_cast<int>(rank);
  sample.step = is_count(step, kMostSteps) ? static_cast<Index>(step) : 0;
  RunDevice& device = data.devices[sample.rank];
  if (const std::string_view host = line.text("host"); host != device.host && !host.empty()) {
    device.host = short_text(host, kMostName);
  }
  if (const std::string_view source = line.text("power_source");
      source != device.power_source && !source.empty()) {
    device.power_source = short_text(source, kMostName);
  }
  add_energy(line, sample, device);
  add_sample(data, device, sample);
  return true;
}

bool add_event_line(const FlatJson& line, RunData& data) {
  RunEvent event{line.number("t_s"),
                 0,
                 -1,
                 short_text(line.text("kind"), kMostName),
                 short_text(line.text("text"), kMostText)};
  if (event.kind.empty()) {
    return false;
  }
  const double step = line.number("step");
  const double rank = line.number("rank");
  event.step = is_count(step, kMostSteps) ? static_cast<Index>(step) : 0;
  event.rank = is_count(rank, kMostRanks) ? static_cast<int>(rank) : -1;
  count_fault(line, event.kind, data.faults);
  data.events.push_back(std::move(event));
  return true;
}

bool add_timing_line(const FlatJson& line, RunData& data) {
  const double rank = line.number("rank");
  const double step = line.number("step");
  const double steps = line.number("steps");
  if (!is_count(rank, kMostRanks)) {
    return false;
  }
  StepTiming timing = record_of(line, kTimingMembers);
  timing.rank = static_cast<int>(rank);
  timing.step = is_count(step, kMostSteps) ? static_cast<Index>(step) : 0;
  timing.steps = is_count(steps, kMostSteps) ? static_cast<Index>(steps) : 0;
  (line.number("predicted") == 1 ? data.predicted : data.timings).push_back(timing);
  return true;
}

}  // namespace tessera::engine
