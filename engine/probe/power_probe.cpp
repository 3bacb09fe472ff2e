#include "engine/probe/power_probe.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <thread>
#include <vector>

#include "engine/comm/tags.h"
#include "engine/ops/loops/threads.h"
#include "engine/power/power_sampler.h"
#include "engine/probe/convolution_trial.h"
#include "engine/system/clock.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

using partitioner::PowerProfile;
using partitioner::PowerScope;

constexpr double kSettlePeriods = 2;  // before a state counts
constexpr double kLeastPeriods = 4;   // that it counts for

void rest(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

// What a training step spends most of its time with.
class TrainingLoad {
 public:
  TrainingLoad() : maps_(ColdArray::elements(kElements)), trial_(common_trials().front(), maps_) {}

  void run(double seconds) {
    for (const double end = now_s() + seconds; now_s() < end;) {
      trial_.forward();
      trial_.backward_data();
      trial_.backward_weights();
    }
  }

 private:
  static constexpr Index kElements = Index{2} << 20U;  // of each array: 8 MiB

  ProbeMaps maps_;
  ConvolutionTrial trial_;
};

// Sends to a rank, as fast as the link carries, which learns from each message whether another
// follows.
class Stream {
 public:
  Stream(const Communicator& communicator, int peer)
      : communicator_(communicator), peer_(peer), load_(kMessages * kMessageBytes) {}

  void send(double seconds) {
    const double end = now_s() + seconds;
    for (bool more = true; more;) {
      more = now_s() < end;
      load_[0] = std::byte{more};
      for_each_message([this](Requests& requests, std::span<std::byte> message) {
        communicator_.post_send(requests, peer_, kProbeLoadTag, message);
      });
    }
  }

  void receive() {
    for (load_[0] = std::byte{true}; load_[0] == std::byte{true};) {
      for_each_message([this](Requests& requests, std::span<std::byte> message) {
        communicator_.post_receive(requests, peer_, kProbeLoadTag, message);
      });
    }
  }

 private:
  static constexpr std::size_t kMessages = 4;
  static constexpr std::size_t kMessageBytes = 65536;

  template <class Post>
  void for_each_message(const Post& post) {
    Requests requests;
    for (std::size_t i = 0; i < kMessages; ++i) {
      post(requests, std::span(load_).subspan(i * kMessageBytes, kMessageBytes));
    }
    requests.wait_all();
  }

  const Communicator& communicator_;
  int peer_;
  std::vector<std::byte> load_;
};

// Mean watts of states that a machine is brought into, one after the other.
class StateMeter {
 public:
  StateMeter(const std::optional<PowerMeter>& meter, double period_s, double state_s)
      : settle_s_(kSettlePeriods * period_s), state_s_(state_s) {
    if (meter && !meter->description().estimated) {
      sampler_.emplace(*meter);
    }
  }

  // work(seconds) keeps the machine in the state for so long. Nothing where there is no meter, or
  // it failed for most of the time.
  template <class Work>
  [[nodiscard]] std::optional<double> watts(const Work& work) {
    work(settle_s_);
    const EnergyTotal before = total();
    work(state_s_);
    const EnergyTotal after = total();
    const double measured_s = after.measured_s - before.measured_s;
    if (measured_s < state_s_ / 2) {
      return std::nullopt;
    }
    return std::max(0.0, after.energy_j - before.energy_j) / measured_s;
  }

  [[nodiscard]] std::string problem() const { return sampler_ ? sampler_->state().problem : ""; }

 private:
  [[nodiscard]] EnergyTotal total() const {
    return sampler_ ? sampler_->state().total : EnergyTotal{};
  }

  double settle_s_;
  double state_s_;
  std::optional<PowerSampler> sampler_;
};

// 1, 2, ..., 8, then in steps of doubling, and all.
std::vector<int> counts_up_to(int all) {
  constexpr int kEach = 8;
  std::vector<int> counts;
  for (int count = 1; count < all; count += count < kEach ? 1 : count) {
    counts.push_back(count);
  }
  counts.push_back(all);
  return counts;
}

// Watts for each number of cores, from those that were measured: linear between them.
std::vector<double> filled_up(const std::vector<int>& counts, const std::vector<double>& watts) {
  std::vector<double> all{watts.front()};
  for (std::size_t i = 1; i < counts.size(); ++i) {
    const double steps = counts[i] - counts[i - 1];
    for (int step = 1; step <= static_cast<int>(steps); ++step) {
      all.push_back(watts[i - 1] + step / steps * (watts[i] - watts[i - 1]));
    }
  }
  return all;
}

PowerProfile profile_of(const MeterDescription& meter) {
  PowerProfile power;
  power.source = meter.source;
  power.scope = meter.scope == MeterScope::Processor ? PowerScope::Processor
                : meter.scope == MeterScope::Rails   ? PowerScope::Rails
                                                     : PowerScope::Device;
  power.estimated = meter.estimated;
  power.relative_error = meter.relative_error;
  return power;
}

// A meter that estimates tells all without waiting.
PowerMeasurement estimate(PowerMeter meter) {
  PowerProfile power = profile_of(meter.description());
  std::vector<double> watts;
  for (int cores = 0; cores <= threads(); ++cores) {
    const auto reading = meter.read({static_cast<double>(cores), {}});
    if (!reading) {
      return {{}, meter.problem()};
    }
    watts.push_back(reading->value);
  }
  power.idle_w = watts.front();
  power.busy_w.assign(watts.begin() + 1, watts.end());
  return {power, {}};
}

// Who sends to whom at the same time, in each state: each rank sends once and receives once; of an
// odd number of ranks the first does so twice.
std::vector<std::vector<std::pair<int, int>>> transfers_of(int ranks) {
  std::vector<std::pair<int, int>> up;
  std::vector<std::pair<int, int>> down;
  for (int rank = 0; rank + 1 < ranks; rank += 2) {
    up.emplace_back(rank, rank + 1);
    down.emplace_back(rank + 1, rank);
  }
  if (ranks == 1) {
    return {};
  }
  if (ranks % 2 == 0) {
    return {up, down};
  }
  return {up, down, {{ranks - 1, 0}}, {{0, ranks - 1}}};
}

class PowerProbe {
 public:
  PowerProbe(const std::optional<PowerMeter>& meter,
             double period_s,
             double seconds,
             const Communicator& communicator)
      : communicator_(communicator),
        counts_(counts_up_to(largest(threads()))),
        transfers_(transfers_of(communicator.size())),
        states_(meter,
                period_s,
                std::max(kLeastPeriods * period_s,
                         seconds / number_of_states() - kSettlePeriods * period_s)) {}

  // Without what is said of the meter; nothing where a state could not be measured.
  [[nodiscard]] std::optional<PowerProfile> measure() {
    const std::optional<double> idle_w = watts(rest);
    const std::vector<std::optional<double>> busy_w = measure_computing();
    PowerProfile power;
    measure_transfers(power);
    const auto measured = [](const std::optional<double>& value) { return value.has_value(); };
    if (!idle_w || !std::all_of(busy_w.begin(), busy_w.end(), measured)) {
      return std::nullopt;
    }
    std::vector<double> all;
    for (const std::optional<double>& value : busy_w) {
      all.push_back(*value);
    }
    power.idle_w = *idle_w;
    power.busy_w = filled_up(counts_up_to(threads()), all);
    return power;
  }

  [[nodiscard]] std::string problem() const { return states_.problem(); }

 private:
  [[nodiscard]] int largest(int mine) const {
    const std::vector<int> all = communicator_.of_ranks(mine);
    return *std::max_element(all.begin(), all.end());
  }

  [[nodiscard]] double number_of_states() const {
    return static_cast<double>(1 + counts_.size() + transfers_.size());
  }

  // All ranks begin a state at the same time.
  template <class Work>
  std::optional<double> watts(const Work& work) {
    communicator_.barrier();
    return states_.watts(work);
  }

  // With each of counts_up_to(threads()); a rank of fewer threads than others rests at the end.
  std::vector<std::optional<double>> measure_computing() {
    TrainingLoad load;
    const std::vector<int> mine = counts_up_to(threads());
    const int before = threads();
    std::vector<std::optional<double>> busy_w;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      if (i < mine.size()) {
        set_threads(mine[i]);
        busy_w.push_back(watts([&](double seconds) { load.run(seconds); }));
      } else {
        (void)watts(rest);
      }
    }
    set_threads(before);
    return busy_w;
  }

  void measure_transfers(PowerProfile& power) {
    for (const auto& pairs : transfers_) {
      std::optional<double>* result = nullptr;
      std::optional<double> value;
      for (const auto& [from, to] : pairs) {
        if (communicator_.rank() == from) {
          Stream stream(communicator_, to);
          value = watts([&](double seconds) { stream.send(seconds); });
          result = &power.sending_w;
        } else if (communicator_.rank() == to) {
          Stream stream(communicator_, from);
          value = watts([&](double) { stream.receive(); });
          result = &power.receiving_w;
        }
      }
      if (result == nullptr) {
        (void)watts(rest);
      } else if (!result->has_value()) {
        *result = value;
      }
    }
  }

  const Communicator& communicator_;
  std::vector<int> counts_;
  std::vector<std::vector<std::pair<int, int>>> transfers_;
  StateMeter states_;
};

}  // namespace

PowerMeasurement measure_power(const std::optional<PowerMeter>& meter,
                               double seconds,
                               const Communicator& communicator) {
  const bool measures = meter && !meter->description().estimated;
  const std::vector<double> periods =
      communicator.of_ranks(measures ? meter->description().period_s : 0.0);
  const double period_s = *std::max_element(periods.begin(), periods.end());
  if (period_s == 0) {
    return meter ? estimate(*meter) : PowerMeasurement{};
  }
  PowerProbe probe(meter, period_s, seconds, communicator);
  std::optional<PowerProfile> measured = probe.measure();
  if (!measures) {
    return meter ? estimate(*meter) : PowerMeasurement{};
  }
  if (!measured) {
    const std::string problem = probe.problem();
    return {{}, problem.empty() ? "the meter failed for most of the time" : problem};
  }
  PowerProfile power = profile_of(meter->description());
  power.idle_w = measured->idle_w;
  power.busy_w = measured->busy_w;
  power.sending_w = measured->sending_w;
  power.receiving_w = measured->receiving_w;
  return {power, {}};
}

}  // namespace tessera::engine
