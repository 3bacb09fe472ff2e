// The electric energy of a step: of each device that has a part in it, what it takes to compute,
// and to wait for the rest of the step, by the power that its profile has.
//
//   joules = computing * w(all cores) + handling * w(1 core) + rest * w(idle)
//          + sent bytes * j/byte + received bytes * j/byte
//
// `handling` is the processor time of messages, packing and unpacking. Where power was measured
// while a device sends and receives, that has the processor's part in it: then the bytes count, and
// the time for them as idle. A device without any part in the step takes nothing, as if it were
// switched off.

#pragma once

#include <optional>
#include <vector>

#include "partitioner/cost/cluster_profile.h"
#include "partitioner/cost/cost_model.h"
#include "partitioner/cost/simulation.h"
#include "partitioner/cost/step_prices.h"

namespace tessera::partitioner {

// What a device does in a step.
struct DeviceActivity {
  double computing_s = 0;
  double handling_s = 0;
  double sent_bytes = 0;
  double received_bytes = 0;

  [[nodiscard]] bool takes_part() const {
    return computing_s > 0 || handling_s > 0 || sent_bytes > 0 || received_bytes > 0;
  }
};

// The activity of each rank, as simulated; and as the cost model has it, which knows nothing of
// single messages. The loss, which all ranks add up, is no part in a step.
[[nodiscard]] std::vector<DeviceActivity> device_activities(const Plan& plan,
                                                            const PricedStep& priced,
                                                            const SimulatedStep& step);
[[nodiscard]] std::vector<DeviceActivity> device_activities(const StepCost& cost);

// Extra joules of each byte beside what the device takes anyway; 0 where nothing is known.
struct ByteEnergy {
  double sent_j = 0;
  double received_j = 0;
};
[[nodiscard]] ByteEnergy byte_energy(const ClusterProfile& cluster,
                                     int device,
                                     const PowerProfile& power);

struct StepEnergy {
  double step_s = 0;
  double energy_j = 0;
  std::vector<double> per_device_j = {};      // [rank]
  bool estimated = false;                     // of some device that has a part by a table
  std::optional<double> relative_error = {};  // of power, the largest that is known

  [[nodiscard]] double power_w() const { return energy_j / step_s; }
  [[nodiscard]] double energy_delay_js() const { return energy_j * step_s; }
};

enum class IdleDevices { SwitchedOff, Counted };  // those without a part in the step

// Nothing where the power of a device that counts is unknown.
[[nodiscard]] std::optional<StepEnergy> step_energy(const ClusterProfile& cluster,
                                                    const std::vector<DeviceActivity>& activities,
                                                    double step_s,
                                                    IdleDevices idle = IdleDevices::SwitchedOff);

}  // namespace tessera::partitioner
