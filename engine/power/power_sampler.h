// Reads one meter at the meter's own pace, in a thread of its own, and adds up the energy. Whoever
// wants to know looks at the state, which never waits for the meter.

#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "engine/power/energy_integral.h"
#include "engine/power/power_meter.h"
#include "partitioner/base/region.h"

namespace tessera::engine {

struct PowerState {
  EnergyTotal total;                 // since the first reading; of now
  std::optional<PowerReading> last;  // nothing before the first one
  Index failures = 0;                // readings that failed
  std::string problem;               // why the last reading failed; empty where it did not
};

class PowerSampler {
 public:
  explicit PowerSampler(PowerMeter meter);
  // Ends a look that is under way.
  ~PowerSampler();
  PowerSampler(const PowerSampler&) = delete;
  PowerSampler& operator=(const PowerSampler&) = delete;

  [[nodiscard]] const MeterDescription& description() const { return description_; }

  // Cores of the board that are busy, for meters that estimate: counts until it is set again.
  void set_busy_cores(double cores) { busy_cores_ = cores; }

  // As of the moment `time_s` of now_s(), which is not before the last call's. While readings fail,
  // total.power_w is empty.
  [[nodiscard]] PowerState state(double time_s) const;
  [[nodiscard]] PowerState state() const;  // as of now

 private:
  void sample(const std::stop_token& stop);
  void take_reading(const std::stop_token& stop);

  MeterDescription description_;
  PowerMeter meter_;  // of the thread
  std::atomic<double> busy_cores_{0};
  mutable std::mutex mutex_;         // of what follows
  mutable EnergyIntegral integral_;  // remembers what it said
  Index failures_ = 0;
  std::string problem_;
  std::condition_variable_any wake_;
  std::jthread thread_;  // last: it uses all others
};

}  // namespace tessera::engine
