// What a person asks of a run first: how far it is, how fast, how good, and how each device does.
// Numbers that are unknown are NaN.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/run_view/run_data.h"

namespace tessera::engine {

struct RunProgress {
  Index step = 0;
  Index last_step = 0;          // 0: unknown
  double epoch = kUnknown;      // how often all pictures have been seen
  double epochs = kUnknown;     // at the last step
  double elapsed_s = kUnknown;  // until the last news
  double left_s = kUnknown;     // at the pace of the latest steps, evaluations included
  double step_s = kUnknown;     // median of the latest
  double predicted_step_s = kUnknown;
  double images_per_s = kUnknown;
  double loss = kUnknown;  // of the last step
  double learning_rate = kUnknown;
  double accuracy = kUnknown;  // of the last evaluation
  double best_accuracy = kUnknown;
  double energy_j = kUnknown;  // of the run so far, all devices
};
[[nodiscard]] RunProgress progress_of(const RunData& data);

// The median of those that are known; NaN of none.
[[nodiscard]] double median_known(std::vector<double> values);

// Of all devices: what the last sample of each says, or the meter of all of them together; without
// samples what steps say.
[[nodiscard]] double run_energy_j(const RunData& data);

// "faults: 2, time lost 8.1 s, steps repeated 1"; empty where there were none.
[[nodiscard]] std::string faults_text(const RunFaults& faults);

struct DeviceNow {
  int rank = 0;
  std::string host;
  std::string tile;                  // see tile_text()
  std::optional<StepTiming> timing;  // the latest
  double rss_bytes = kUnknown;
  double limit_bytes =
      kUnknown;             // that it may use: the run's limit, or what it has and what is free
  double cores = kUnknown;  // that are busy for it, of the latest seconds, as are the rates
  double received_bytes_per_s = kUnknown;
  double sent_bytes_per_s = kUnknown;
  double temperature_c = kUnknown;
  bool throttled = false;
  double power_w = kUnknown;
  double silent_s = 0;  // since its last sample, while others have sent some
};
// A device for each rank that is known of.
[[nodiscard]] std::vector<DeviceNow> devices_now(const RunData& data);

// The part of the first group's map that a rank owns, as far as it is cut, half-open: "rows 0-14,
// columns 14-28" is "r0-14 c14-28", images are i and channels k; "all", or "idle" where it has
// none.
[[nodiscard]] std::string tile_text(const PlanOutline& plan, int rank);

// "0:12:41" or "12:41".
[[nodiscard]] std::string duration(double seconds);

}  // namespace tessera::engine
