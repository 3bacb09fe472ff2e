#include "partitioner/cost/step_energy.h"

#include <algorithm>
#include <cmath>

#include "partitioner/base/errors.h"

namespace tessera::partitioner {

namespace {

using Doing = TimelineSpan::Doing;

bool is_of_loss(const Plan& plan, const Action& action) {
  if (action.kind == Action::Kind::Compute || !plan.transfers.contains(action.transfer)) {
    return false;
  }
  const TransferKind kind = plan.transfers[action.transfer].kind;
  return kind == TransferKind::Loss || kind == TransferKind::GradientNorm;
}

void add_bytes(const PricedTransfer& transfer, std::vector<DeviceActivity>& activities) {
  for (const Parcel& parcel : transfer.parcels) {
    activities[static_cast<std::size_t>(parcel.from)].sent_bytes += parcel.bytes;
    activities[static_cast<std::size_t>(parcel.to)].received_bytes += parcel.bytes;
  }
}

// The energy of a byte where `watts` are taken at so many bytes per second.
double joules_of_byte(const std::optional<double>& watts, double idle_w, double bytes_per_s) {
  return watts && std::isfinite(bytes_per_s) ? std::max(0.0, *watts - idle_w) / bytes_per_s : 0;
}

double device_joules(const PowerProfile& power,
                     const ByteEnergy& byte,
                     const DeviceActivity& activity,
                     double step_s) {
  const bool by_bytes = power.sending_w || power.receiving_w;
  const double handling_w = by_bytes ? power.idle_w : power_w(power, 1);
  const double rest_s = std::max(0.0, step_s - activity.computing_s - activity.handling_s);
  return activity.computing_s * power.busy_w.back() + activity.handling_s * handling_w +
         rest_s * power.idle_w + activity.sent_bytes * byte.sent_j +
         activity.received_bytes * byte.received_j;
}

}  // namespace

std::vector<DeviceActivity> device_activities(const Plan& plan,
                                              const PricedStep& priced,
                                              const SimulatedStep& step) {
  std::vector<DeviceActivity> activities(step.timelines.size());
  for (std::size_t rank = 0; rank < activities.size(); ++rank) {
    for (const TimelineSpan& span : step.timelines[rank]) {
      const Action& action = priced.actions[span.action].action;
      const double seconds = span.end_s - span.begin_s;
      if (span.doing == Doing::Compute) {
        activities[rank].computing_s += seconds;
      } else if (span.doing != Doing::Wait && !is_of_loss(plan, action)) {
        activities[rank].handling_s += seconds;
      }
    }
  }
  for (const PricedAction& each : priced.actions) {
    if (each.action.kind == Action::Kind::Start && !is_of_loss(plan, each.action)) {
      add_bytes(priced.transfers[each.action.transfer], activities);
    }
  }
  return activities;
}

std::vector<DeviceActivity> device_activities(const StepCost& cost) {
  expects(!cost.groups.empty(), "a step has groups");
  std::vector<DeviceActivity> activities(cost.groups.front().ranks.size());
  for (const GroupCost& group : cost.groups) {
    for (std::size_t rank = 0; rank < activities.size(); ++rank) {
      activities[rank].computing_s += static_cast<double>(cost.passes) * group.ranks[rank].total();
    }
  }
  return activities;
}

ByteEnergy byte_energy(const ClusterProfile& cluster, int device, const PowerProfile& power) {
  const DeviceProfile& profile = cluster.device(device);
  const double link = cluster.link.bytes_per_s;
  return {
      joules_of_byte(power.sending_w, power.idle_w, std::min(link, profile.send_bytes_per_s)),
      joules_of_byte(power.receiving_w, power.idle_w, std::min(link, profile.receive_bytes_per_s))};
}

std::optional<StepEnergy> step_energy(const ClusterProfile& cluster,
                                      const std::vector<DeviceActivity>& activities,
                                      double step_s,
                                      IdleDevices idle) {
  expects(activities.size() == cluster.devices.size(), "every device does something or nothing");
  StepEnergy sum;
  sum.step_s = step_s;
  sum.per_device_j.resize(activities.size());
  for (std::size_t rank = 0; rank < activities.size(); ++rank) {
    if (!activities[rank].takes_part() && idle == IdleDevices::SwitchedOff) {
      continue;
    }
    const auto device = static_cast<int>(rank);
    const std::optional<PowerProfile> power = known_power(cluster.device(device));
    if (!power) {
      return std::nullopt;
    }
    const double joules =
        device_joules(*power, byte_energy(cluster, device, *power), activities[rank], step_s);
    sum.per_device_j[rank] = joules;
    sum.energy_j += joules;
    sum.estimated = sum.estimated || power->estimated;
    if (power->relative_error) {
      sum.relative_error = std::max(sum.relative_error.value_or(0), *power->relative_error);
    }
  }
  return sum;
}

}  // namespace tessera::partitioner
