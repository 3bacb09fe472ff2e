#include "engine/run_view/run_figures.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <utility>

namespace tessera::engine {

namespace {

constexpr std::ptrdiff_t kLatestSteps = 100;
constexpr double kLatest_s = 5;

double larger(double a, double b) {
  return !known(a) || b > a ? b : a;
}

double latest_t_s(const RunData& data) {
  double latest = kUnknown;
  if (!data.steps.empty()) {
    latest = larger(latest, data.steps.back().t_s);
  }
  if (!data.events.empty()) {
    latest = larger(latest, data.events.back().t_s);
  }
  for (const auto& [rank, device] : data.devices) {
    latest = device.samples.empty() ? latest : larger(latest, device.samples.back().t_s);
  }
  return latest;
}

double sum_of_steps(const RunData& data, double StepRecord::*part) {
  double sum = kUnknown;
  for (const StepRecord& step : data.steps) {
    if (known(step.*part)) {
      sum = (known(sum) ? sum : 0) + static_cast<double>(step.lines) * step.*part;
    }
  }
  return sum;
}

std::vector<StepRecord> latest_steps(const RunData& data) {
  return {data.steps.end() - std::min<std::ptrdiff_t>(kLatestSteps, std::ssize(data.steps)),
          data.steps.end()};
}

double median_of(const std::vector<StepRecord>& steps, double StepRecord::*part) {
  std::vector<double> values;
  for (const StepRecord& step : steps) {
    values.push_back(step.*part);
  }
  return median_known(std::move(values));
}

// Seconds from one step to the next one, with all that lies in between.
double pace_s(const std::vector<StepRecord>& steps, double step_s) {
  if (steps.size() < 2) {
    return step_s;
  }
  const StepRecord& first = steps.front();
  const StepRecord& last = steps.back();
  const double pace = (last.t_s - first.t_s) / static_cast<double>(last.step - first.step);
  return last.step > first.step && pace > 0 ? pace : step_s;
}

// What a counter gained per second from the first sample to the last one; a process that was
// started anew counts from 0 again.
double rate(const DeviceSample& first, const DeviceSample& last, double DeviceSample::*counter) {
  const double gain = last.*counter - first.*counter;
  const double seconds = last.t_s - first.t_s;
  return gain >= 0 && seconds > 0 ? gain / seconds : kUnknown;
}

void add_samples(const RunDevice& device, DeviceNow& now) {
  const DeviceSample& last = device.samples.back();
  now.host = device.host.empty() ? now.host : device.host;
  now.rss_bytes = last.rss_bytes;
  now.limit_bytes = last.rss_bytes + last.free_bytes;
  now.temperature_c = last.temperature_c;
  now.throttled = last.throttled > 0;
  now.power_w = last.power_w;
  auto first = device.samples.end() - 1;
  while (first != device.samples.begin() && last.t_s - first->t_s < kLatest_s) {
    --first;
  }
  now.cores = rate(*first, last, &DeviceSample::cpu_user_s) +
              rate(*first, last, &DeviceSample::cpu_system_s);
  now.received_bytes_per_s = rate(*first, last, &DeviceSample::rx_bytes);
  now.sent_bytes_per_s = rate(*first, last, &DeviceSample::tx_bytes);
}

}  // namespace

double median_known(std::vector<double> values) {
  std::erase_if(values, [](double value) { return !known(value); });
  if (values.empty()) {
    return kUnknown;
  }
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

RunProgress progress_of(const RunData& data) {
  RunProgress progress;
  progress.step = data.last_step_done();
  progress.elapsed_s = larger(latest_t_s(data), kUnknown);
  if (!known(progress.elapsed_s)) {
    progress.elapsed_s = sum_of_steps(data, &StepRecord::step_s);
  }
  progress.energy_j = run_energy_j(data);
  const std::vector<StepRecord> latest = latest_steps(data);
  progress.step_s = median_of(latest, &StepRecord::step_s);
  progress.images_per_s = median_of(latest, &StepRecord::images_per_s);
  if (!latest.empty()) {
    progress.loss = latest.back().loss;
    progress.learning_rate = latest.back().learning_rate;
  }
  if (data.info) {
    progress.last_step = data.info->last_step;
    progress.predicted_step_s = data.info->predicted_step_s;
    progress.left_s = std::max<double>(static_cast<double>(progress.last_step - progress.step), 0) *
                      pace_s(latest, progress.step_s);
    if (const double epoch_steps = data.info->steps_of_epoch(); epoch_steps > 0) {
      progress.epoch = static_cast<double>(progress.step) / epoch_steps;
      progress.epochs = static_cast<double>(progress.last_step) / epoch_steps;
    }
  }
  for (const EvaluationRecord& evaluation : data.evaluations) {
    progress.accuracy = evaluation.accuracy;
    progress.best_accuracy = larger(progress.best_accuracy, evaluation.accuracy);
  }
  return progress;
}

double run_energy_j(const RunData& data) {
  double sum = kUnknown;
  for (const auto& [rank, device] : data.devices) {
    if (known(device.cluster_energy_j)) {
      return device.cluster_energy_j;
    }
    if (known(device.energy_j)) {
      sum = (known(sum) ? sum : 0) + device.energy_j;
    }
  }
  return known(sum) ? sum : sum_of_steps(data, &StepRecord::energy_j);
}

std::string faults_text(const RunFaults& faults) {
  return faults.faults == 0 ? ""
                            : fmt::format("faults: {}, time lost {:.1f} s, steps repeated {}",
                                          faults.faults,
                                          faults.lost_s,
                                          faults.repeated_steps);
}

std::vector<DeviceNow> devices_now(const RunData& data) {
  std::vector<DeviceNow> devices(static_cast<std::size_t>(data.ranks()));
  double latest = kUnknown;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const int rank = static_cast<int>(i);
    devices[i].rank = rank;
    if (data.info && i < data.info->ranks.size()) {
      devices[i].host = data.info->ranks[i].host;
    }
    if (const auto device = data.devices.find(rank);
        device != data.devices.end() && !device->second.samples.empty()) {
      add_samples(device->second, devices[i]);
      latest = larger(latest, device->second.samples.back().t_s);
    } else if (i < data.memory.size()) {
      devices[i].rss_bytes = data.memory[i].peak_resident_bytes;
    }
    if (data.info && known(data.info->memory_limit_bytes)) {
      devices[i].limit_bytes = data.info->memory_limit_bytes;
    }
    devices[i].tile = data.plan ? tile_text(*data.plan, rank) : "";
  }
  for (const auto& [rank, device] : data.devices) {
    if (!device.samples.empty() && rank < std::ssize(devices)) {
      devices[static_cast<std::size_t>(rank)].silent_s = latest - device.samples.back().t_s;
    }
  }
  for (const StepTiming& timing : data.timings) {
    if (timing.rank < std::ssize(devices)) {
      devices[static_cast<std::size_t>(timing.rank)].timing = timing;
    }
  }
  return devices;
}

std::string tile_text(const PlanOutline& plan, int rank) {
  if (rank < 0 || rank >= plan.ranks || plan.groups.empty()) {
    return "";
  }
  const OutlinedGroup& group = plan.groups.front();
  const Region& owned = group.tiles[static_cast<std::size_t>(rank)].owned;
  if (owned.empty()) {
    return "idle";
  }
  const OutlinedLayer& map = plan.layers[static_cast<std::size_t>(group.last)];
  std::string text;
  const auto add = [&](char letter, const Range& range, Index whole) {
    if (range.size() < whole) {
      text += fmt::format("{}{}{}-{}", text.empty() ? "" : " ", letter, range.begin, range.end);
    }
  };
  add('i', owned.images, plan.batch);
  add('k', owned.channels, map.channels);
  add('r', owned.rows, map.rows);
  add('c', owned.cols, map.cols);
  return text.empty() ? "all" : text;
}

std::string duration(double seconds) {
  const auto whole = static_cast<Index>(std::llround(seconds));
  return whole >= 3600 ? fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60)
                       : fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace tessera::engine
