#include "engine/run_view/run_limits.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tessera::engine {

namespace {

// The mean of two numbers by their weights, an unknown one counting as 0; unknown where both are.
double joined(double a, double weight_a, double b, double weight_b) {
  if (!known(a) && !known(b)) {
    return kUnknown;
  }
  return ((known(a) ? weight_a * a : 0) + (known(b) ? weight_b * b : 0)) / (weight_a + weight_b);
}

double largest(double a, double b) {
  return !known(a) || b > a ? b : a;
}

// Where the last record but one does not stand for as many lines as the others, the last one is
// joined to it. The first record stays alone: what has risen since then begins with it.
template <class Record, class Join>
void join_last(std::vector<Record>& records, Index lines, Join join) {
  const std::size_t count = records.size();
  if (count > 2 && records[count - 2].lines < lines) {
    records[count - 2] = join(records[count - 2], records[count - 1]);
    records.pop_back();
  }
}

// Makes one of each two records that follow each other, but for the first.
template <class Record, class Join>
void join_pairs(std::vector<Record>& records, Join join) {
  std::size_t kept = std::min<std::size_t>(records.size(), 1);
  for (std::size_t i = 1; i < records.size(); i += 2) {
    records[kept++] = i + 1 < records.size() ? join(records[i], records[i + 1]) : records[i];
  }
  records.resize(kept);
}

StepRecord join_steps(const StepRecord& a, const StepRecord& b) {
  StepRecord record = b;
  record.energy_j =
      joined(a.energy_j, static_cast<double>(a.lines), b.energy_j, static_cast<double>(b.lines));
  record.lines = a.lines + b.lines;
  return record;
}

EvaluationRecord better(const EvaluationRecord& a, const EvaluationRecord& b) {
  EvaluationRecord record = a.accuracy > b.accuracy ? a : b;
  record.lines = a.lines + b.lines;
  return record;
}

DeviceSample join_samples(const DeviceSample& a, const DeviceSample& b) {
  DeviceSample sample = b;
  if (known(a.power_w) && known(b.power_w)) {
    sample.power_w =
        joined(a.power_w, static_cast<double>(a.lines), b.power_w, static_cast<double>(b.lines));
  }
  sample.rss_bytes = largest(a.rss_bytes, b.rss_bytes);
  sample.temperature_c = largest(a.temperature_c, b.temperature_c);
  sample.throttled = largest(a.throttled, b.throttled);
  sample.lines = a.lines + b.lines;
  return sample;
}

StepTiming join_timings(const StepTiming& a, const StepTiming& b) {
  StepTiming timing = b;
  const auto weight = [](const StepTiming& one) {
    return static_cast<double>(std::max<Index>(one.steps, 1));
  };
  for (const auto part : kStepShares) {
    timing.*part = joined(a.*part, weight(a), b.*part, weight(b));
  }
  timing.steps = std::max<Index>(a.steps, 1) + std::max<Index>(b.steps, 1);
  return timing;
}

// How many of so many are older than the newest ones.
std::size_t older(std::size_t records) {
  return records - std::min(records, records / 4 + 1);
}

// Of a rank two are joined at a time; what is newest stays as it is. Their order is that of ranks
// in time, and only means are made of them: so it does not matter which are joined.
void join_by_rank(std::vector<StepTiming>& timings) {
  const std::size_t end = older(timings.size());
  std::map<int, std::size_t> waiting;  // for another one of the same rank; where it is
  std::size_t kept = 0;
  for (std::size_t i = 0; i < end; ++i) {
    const auto [place, first] = waiting.try_emplace(timings[i].rank, kept);
    if (first) {
      timings[kept++] = timings[i];
    } else {
      timings[place->second] = join_timings(timings[place->second], timings[i]);
      waiting.erase(place);
    }
  }
  timings.erase(timings.begin() + static_cast<std::ptrdiff_t>(kept),
                timings.begin() + static_cast<std::ptrdiff_t>(end));
}

void join_samples_of_all(RunData& data) {
  data.joined.samples *= 2;
  data.samples = 0;
  for (auto& [rank, device] : data.devices) {
    join_pairs(device.samples, join_samples);
    device.joined = data.joined.samples;
    data.samples += device.samples.size();
  }
}

void drop_events(RunData& data) {
  std::vector<RunEvent>& events = data.events;
  const std::size_t before = events.size();
  const auto end = events.begin() + static_cast<std::ptrdiff_t>(older(before));
  events.erase(std::remove_if(events.begin(), end, is_routine), end);
  if (events.size() > before - before / 4) {
    events.erase(events.begin(), events.begin() + static_cast<std::ptrdiff_t>(before / 2));
  }
  data.dropped_events += static_cast<Index>(before - events.size());
}

}  // namespace

void keep_within(const RunLimits& limits, RunData& data) {
  join_last(data.steps, data.joined.steps, join_steps);
  if (data.steps.size() > limits.steps) {
    join_pairs(data.steps, join_steps);
    data.joined.steps *= 2;
  }
  join_last(data.evaluations, data.joined.evaluations, better);
  if (data.evaluations.size() > limits.evaluations) {
    join_pairs(data.evaluations, better);
    data.joined.evaluations *= 2;
  }
  if (data.samples > limits.samples) {
    join_samples_of_all(data);
  }
  if (data.events.size() > limits.events) {
    drop_events(data);
  }
  for (auto* timings : {&data.timings, &data.predicted}) {
    if (timings->size() > limits.timings) {
      join_by_rank(*timings);
    }
  }
}

void add_sample(RunData& data, RunDevice& device, const DeviceSample& sample) {
  const std::size_t before = device.samples.size();
  device.joined = data.joined.samples;
  device.samples.push_back(sample);
  join_last(device.samples, device.joined, join_samples);
  data.samples += device.samples.size() - before;
}

}  // namespace tessera::engine
