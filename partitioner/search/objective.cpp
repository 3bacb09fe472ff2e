#include "partitioner/search/objective.h"

#include <fmt/format.h>
#include <utility>

#include "partitioner/base/errors.h"
#include "partitioner/base/printable.h"

namespace tessera::partitioner {

namespace {

constexpr std::pair<const char*, Objective> kObjectives[] = {{"time", Objective::Time},
                                                             {"memory", Objective::Memory},
                                                             {"power", Objective::Power},
                                                             {"energy", Objective::Energy},
                                                             {"edp", Objective::EnergyDelay}};

}  // namespace

const char* name_of(Objective objective) {
  for (const auto& [name, named] : kObjectives) {
    if (named == objective) {
      return name;
    }
  }
  return "";
}

std::optional<Objective> objective_named(const std::string& name) {
  for (const auto& [known, objective] : kObjectives) {
    if (name == known) {
      return objective;
    }
  }
  return std::nullopt;
}

double objective_value(Objective objective, double seconds, double energy_j) {
  switch (objective) {
    case Objective::Time:
    case Objective::Memory:
      return seconds;
    case Objective::Power:
      return energy_j / seconds;
    case Objective::Energy:
      return energy_j;
    case Objective::EnergyDelay:
      return energy_j * seconds;
  }
  return seconds;
}

std::optional<int> device_of_unknown_power(const ClusterProfile& cluster) {
  for (int device = 0; device < cluster.size(); ++device) {
    if (!known_power(cluster.device(device))) {
      return device;
    }
  }
  return std::nullopt;
}

void expect_known_powers(const ClusterProfile& cluster) {
  if (const auto device = device_of_unknown_power(cluster)) {
    throw InputError(fmt::format(
        "the power of {} is unknown: `tessera probe --meter` measures it, or its profile names "
        "its kind, such as board = \"pi3b\"",
        printable(cluster.device(*device).name)));
  }
}

}  // namespace tessera::partitioner
