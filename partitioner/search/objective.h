// What a search, or a choice of devices, wants the least of.

#pragma once

#include <optional>
#include <string>

#include "partitioner/cost/cluster_profile.h"

namespace tessera::partitioner {

// Seconds of a step, memory of the device that takes the most, mean watts, joules, or joules times
// seconds of a step.
enum class Objective { Time, Memory, Power, Energy, EnergyDelay };

// "time", "memory", "power", "energy", "edp"
[[nodiscard]] const char* name_of(Objective objective);
[[nodiscard]] std::optional<Objective> objective_named(const std::string& name);

[[nodiscard]] inline bool is_of_energy(Objective objective) {
  return objective == Objective::Power || objective == Objective::Energy ||
         objective == Objective::EnergyDelay;
}

// What devices take more or less of: "energy-delay product". Of memory it is time, which decides
// where the search leaves a choice.
[[nodiscard]] inline const char* noun_of(Objective objective) {
  return objective == Objective::EnergyDelay ? "energy-delay product"
         : is_of_energy(objective)           ? name_of(objective)
                                             : "time";
}

// The value of something that takes so long and so much energy, which only objectives of energy ask
// for; for Memory, its time.
[[nodiscard]] double objective_value(Objective objective, double seconds, double energy_j);

// The first device whose power nobody knows.
[[nodiscard]] std::optional<int> device_of_unknown_power(const ClusterProfile& cluster);
// Throws InputError that names such a device.
void expect_known_powers(const ClusterProfile& cluster);

}  // namespace tessera::partitioner
