#include "engine/probe/cluster_probe.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <malloc.h>
#include <set>

#include "engine/comm/agreement.h"
#include "engine/comm/own_address.h"
#include "engine/comm/texts_of_ranks.h"
#include "engine/probe/alike_devices.h"
#include "engine/probe/device_probe.h"
#include "engine/probe/doubts.h"
#include "engine/probe/link_probe.h"
#include "engine/probe/power_probe.h"
#include "engine/probe/transfer_probe.h"
#include "engine/probe/update_probe.h"
#include "engine/system/host_name.h"
#include "engine/system/limits.h"
#include "engine/system/system_memory.h"
#include "partitioner/base/quantities.h"

namespace tessera::engine {

namespace {

using partitioner::ClusterProfile;
using partitioner::ConvolutionPoint;
using partitioner::DeviceProfile;

// How the seconds that there are get shared out.
constexpr double kDevicePart = 0.55;
constexpr double kLinkPart = 0.25;
constexpr double kAllReducePart = 0.1;
constexpr double kTransferPart = 0.06;
constexpr double kUpdatePart = 0.02;
constexpr double kPowerPart = 0.2;  // of all, where there is a meter

std::string words_of(const ConvolutionPoint& trial) {
  return fmt::format("{} {}x{} from {} to {} channels{}, {}x{} cells",
                     name_of(trial.kernel),
                     trial.size,
                     trial.size,
                     trial.channels,
                     trial.filters,
                     trial.groups > 1 ? fmt::format(" in {} groups", trial.groups) : "",
                     trial.rows,
                     trial.cols);
}

std::string left_out_sentence(const std::vector<ConvolutionPoint>& trials) {
  return trials.empty() ? ""
                        : fmt::format("{} left out for lack of time or memory, such as {}",
                                      counted(std::ssize(trials), "convolution"),
                                      words_of(trials.front()));
}

// Device names lead to ranks: they have to be different.
void tell_apart(std::vector<DeviceProfile>& devices) {
  std::multiset<std::string> names;
  for (const DeviceProfile& device : devices) {
    names.insert(device.name);
  }
  for (std::size_t rank = 0; rank < devices.size(); ++rank) {
    if (names.count(devices[rank].name) > 1) {
      devices[rank].name += fmt::format(".{}", rank);
    }
  }
}

// What each rank says of itself, on all of them.
ClusterProfile gathered_devices(const DeviceProfile& mine, const Communicator& communicator) {
  ClusterProfile alone;
  alone.devices.push_back(mine);
  ClusterProfile cluster;
  for (const std::string& text : texts_of_ranks(communicator, to_text(alone))) {
    cluster.devices.push_back(
        partitioner::parse_cluster_profile(text, "profile of a rank").devices[0]);
  }
  tell_apart(cluster.devices);
  return cluster;
}

// Why this rank has no power, or no better one.
std::string power_problem(const OpenedMeter& opened, const PowerMeasurement& measured) {
  std::vector<std::string> reasons = opened.notes;
  if (!measured.problem.empty()) {
    reasons.insert(reasons.begin(), measured.problem);
  }
  return reasons.empty() ? "" : fmt::format("power: {}", fmt::join(reasons, "; "));
}

// This rank's part of its machine's free memory.
Index free_bytes_of_rank(const Communicator& communicator) {
  return std::clamp<Index>(
      free_memory_bytes() / communicator.ranks_on_this_machine(), 1, partitioner::kMostMemoryBytes);
}

LinkMeasurements measured_links(double seconds,
                                double processor_share,
                                const Communicator& communicator) {
  LinkMeasurements links = measure_links(communicator, kLinkPart * seconds);
  links.message_s /= processor_share;
  links.first_message_s /= processor_share;
  const auto rates =
      communicator.of_ranks(std::min(links.send_bytes_per_s, links.receive_bytes_per_s));
  const double rate = *std::min_element(rates.begin(), rates.end());
  // How long kernels are kept from computing is what counts; processor time may pass beside them.
  links.byte_s = measure_byte_s_of_kernels(communicator, rate, kTransferPart * seconds)
                     .value_or(links.byte_s / processor_share);
  return links;
}

// What this process takes without a network, with the buffers of all connections between ranks.
Index connected_program_bytes(const ClusterProbe& probe, const Communicator& communicator) {
  constexpr double kSeconds = 0.2;
  if (communicator.size() > 1) {
    (void)measure_all_reduces(communicator, kSeconds);
  }
  return probe.program_bytes();
}

// What a process of training may take: what is free when there are connections between ranks, and
// what this process has taken.
Index memory_of_rank(const Communicator& communicator) {
  ::malloc_trim(0);  // what was freed
  const Index resident = resident_bytes();
  communicator.barrier();
  return free_bytes_of_rank(communicator) + resident;
}

// What the system says of this rank, once messages were exchanged.
DeviceLimits limits_of_rank(const std::optional<QuotaPeriods>& before,
                            const Communicator& communicator) {
  DeviceLimits limits{.memory_bytes = memory_allowed_by_ulimit()};
  if (communicator.size() > 1) {
    limits.interface = own_interface();
    limits.negotiated_bits_per_s = negotiated_bits_per_s(limits.interface);
  }
  if (const auto now = quota_periods()) {
    limits.throttled_share = now->throttled_share(before.value_or(QuotaPeriods{}));
  }
  return limits;
}

// Whether any rank has a meter that is no estimate.
bool any_measures(const OpenedMeter& opened, const Communicator& communicator) {
  return on_any_rank(communicator, opened.meter && !opened.meter->description().estimated);
}

// What a person reads, and more than measurements are exact to.
double four_digits(double value) {
  if (value == 0 || std::isinf(value)) {
    return value;
  }
  const double unit = std::pow(10, std::floor(std::log10(std::abs(value))) - 3);
  return unit < 1 ? std::round(value / unit) / std::round(1 / unit)
                  : std::round(value / unit) * unit;
}

void round_numbers(ClusterProfile& cluster) {
  const auto round = [](auto&... values) { ((values = four_digits(values)), ...); };
  const auto round_link = [&](partitioner::LinkProfile& link) {
    round(link.latency_s, link.bytes_per_s);
  };
  for (DeviceProfile& device : cluster.devices) {
    round(device.memory_bytes_per_s, device.copied_bytes_per_s);
    round(device.message_s, device.first_message_s);
    round(device.send_bytes_per_s, device.receive_bytes_per_s, device.updated_weights_per_s);
    round(device.direct_flops_per_s, device.winograd_flops_per_s);
    for (auto rates : partitioner::kPassRates) {
      round((device.*rates).forward_bytes_per_s, (device.*rates).backward_bytes_per_s);
    }
    for (ConvolutionPoint& point : device.convolutions) {
      round(point.forward_s, point.backward_data_s, point.backward_weights_s);
    }
    if (device.power) {
      round(device.power->idle_w);
      for (double& watts : device.power->busy_w) {
        round(watts);
      }
      for (auto* watts : {&device.power->sending_w, &device.power->receiving_w}) {
        if (*watts) {
          round(**watts);
        }
      }
    }
  }
  round_link(cluster.link);
  for (partitioner::LinkException& exception : cluster.exceptions) {
    round_link(exception.link);
  }
  for (partitioner::AllReducePoint& point : cluster.all_reduces) {
    round(point.seconds);
  }
}

// What the ranks left out or doubt, an empty text where nothing: sentences that begin with the
// device, those of all devices about one thing together.
template <class Sentences>
std::vector<std::string> named_sentences(const Sentences& mine,
                                         const ClusterProfile& cluster,
                                         const Communicator& communicator) {
  std::vector<std::string> named;
  const auto all = lists_of_ranks(communicator, {mine.begin(), mine.end()});
  for (std::size_t subject = 0; subject < mine.size(); ++subject) {
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      if (!all[rank][subject].empty()) {
        named.push_back(fmt::format("{}: {}", cluster.devices[rank].name, all[rank][subject]));
      }
    }
  }
  return named;
}

}  // namespace

OpenedMeter meter_of_rank(const std::vector<MeterSpec>& meters, const Communicator& communicator) {
  const std::vector<std::string> hosts = hosts_of_ranks(communicator);
  return agreed(communicator, [&] {
    for (const MeterSpec& meter : meters) {
      if (meter.cluster) {
        throw InputError("--meter " + to_text(meter) +
                         ": a profile has the power of each device: name meters of boards, "
                         "HOST=METER");
      }
    }
    const RankMeters mine = meters_of_rank(meters, hosts, communicator.rank());
    if (std::count(hosts.begin(), hosts.end(), host_name()) == 1) {
      return open_meter(mine.board);
    }
    OpenedMeter none;
    if (!meters.empty()) {
      none.notes.emplace_back("several ranks run on this machine, whose meter shows all of them");
    }
    return none;
  });
}

ProbedCluster probe_cluster(const ClusterProbe& probe, const Communicator& communicator) {
  const double power_s = any_measures(probe.meter, communicator) ? kPowerPart * probe.seconds : 0;
  const double seconds = probe.seconds - power_s;
  const bool alone = communicator.size() == 1;
  const Index free_bytes = free_bytes_of_rank(communicator);
  const std::optional<QuotaPeriods> periods = quota_periods();
  communicator.barrier();  // all at the same time, as when they train
  const Index program_bytes = connected_program_bytes(probe, communicator);
  DeviceMeasurements device = measure_device(
      {probe.trials, (alone ? 1 - kUpdatePart : kDevicePart) * seconds, free_bytes / 2});
  DeviceProfile& mine = device.profile;
  mine.name = host_name();
  mine.program_bytes = program_bytes;
  mine.updated_weights_per_s = measure_updated_weights_per_s(kUpdatePart * seconds);
  std::optional<LinkMeasurements> links;
  std::vector<partitioner::AllReducePoint> all_reduces;
  if (!alone) {
    links = measured_links(seconds, device.processor_share, communicator);
    all_reduces = measure_all_reduces(communicator, kAllReducePart * seconds);
  }
  mine.memory_bytes = memory_of_rank(communicator);
  const DeviceLimits limits = limits_of_rank(periods, communicator);
  const PowerMeasurement power = measure_power(probe.meter.meter, power_s, communicator);
  mine.power = power.power;
  ProbedCluster result;
  ClusterProfile& cluster = result.measured;
  cluster = gathered_devices(mine, communicator);
  if (links) {
    describe_links(links_of_ranks(*links, communicator), cluster);
    cluster.all_reduces = std::move(all_reduces);
  }
  const std::string doubted =
      fmt::format("{}", fmt::join(doubts(cluster.device(communicator.rank()), limits), "; "));
  result.left_out = named_sentences(
      std::array{left_out_sentence(device.left_out), doubted, power_problem(probe.meter, power)},
      cluster,
      communicator);
  if (alone) {
    result.left_out.emplace_back("links: there is only one rank");
  }
  round_numbers(cluster);
  if (!probe.apart) {
    result.kinds = alike_devices(cluster);
  }
  result.described = cluster;
  describe_alike(result.kinds, result.described);
  round_numbers(result.described);  // half way between two numbers
  return result;
}

}  // namespace tessera::engine
