#include "partitioner/cost/power_profile.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tessera::partitioner {

namespace {

constexpr std::array kScopes{PowerScope::Processor, PowerScope::Rails, PowerScope::Device};

}  // namespace

const char* name_of(PowerScope scope) {
  switch (scope) {
    case PowerScope::Processor:
      return "processor";
    case PowerScope::Rails:
      return "rails";
    case PowerScope::Device:
      return "device";
  }
  return "";
}

std::optional<PowerScope> power_scope_named(const std::string& name) {
  const auto* const found = std::find_if(
      kScopes.begin(), kScopes.end(), [&](PowerScope scope) { return name == name_of(scope); });
  return found == kScopes.end() ? std::nullopt : std::optional(*found);
}

double power_w(const PowerProfile& power, double busy_cores) {
  const auto watts = [&](std::size_t cores) {
    return cores == 0 ? power.idle_w : power.busy_w[cores - 1];
  };
  const double cores = std::clamp(busy_cores, 0.0, static_cast<double>(power.busy_w.size()));
  const auto whole = static_cast<std::size_t>(cores);
  const double part = cores - std::floor(cores);
  return part > 0 ? watts(whole) + part * (watts(whole + 1) - watts(whole)) : watts(whole);
}

}  // namespace tessera::partitioner
