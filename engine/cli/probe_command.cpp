#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <malloc.h>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/cli/commands.h"
#include "engine/cli/messages.h"
#include "engine/comm/agreement.h"
#include "engine/comm/own_address.h"
#include "engine/files/atomic_file.h"
#include "engine/ops/loops/threads.h"
#include "engine/power/open_meter.h"
#include "engine/probe/alike_devices.h"
#include "engine/probe/device_probe.h"
#include "engine/probe/doubts.h"
#include "engine/probe/link_probe.h"
#include "engine/probe/power_probe.h"
#include "engine/probe/transfer_probe.h"
#include "engine/probe/update_probe.h"
#include "engine/session/memory_needs.h"
#include "engine/session/model_setup.h"
#include "engine/system/host_name.h"
#include "engine/system/limits.h"
#include "engine/system/system_memory.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/quantities.h"
#include "partitioner/base/text_table.h"

namespace tessera::engine {

namespace {

using partitioner::ClusterProfile;
using partitioner::DeviceProfile;

// How the seconds that there are get shared out.
constexpr double kDevicePart = 0.55;
constexpr double kLinkPart = 0.25;
constexpr double kAllReducePart = 0.1;
constexpr double kTransferPart = 0.06;
constexpr double kUpdatePart = 0.02;
constexpr double kPowerPart = 0.2;  // of all, where there is a meter

struct ProbeResult {
  ClusterProfile cluster;               // each device as it was measured
  std::vector<std::vector<int>> kinds;  // devices to be described by common numbers
  std::vector<std::string> left_out;  // a sentence for each device, of what is missing or doubtful
};

std::string file_to_write(const ProbeCommand& command) {
  if (!command.out.empty()) {
    return command.out;
  }
  return command.hostfile.empty() ? "cluster.toml" : command.hostfile + ".cluster.toml";
}

void expect_writable(const ProbeCommand& command) {
  if (!command.hostfile.empty() && !std::filesystem::is_regular_file(command.hostfile)) {
    throw InputError(command.hostfile, 0, "is not a file: give the host file that mpiexec uses");
  }
  const std::string path = file_to_write(command);
  if (!command.force && std::filesystem::exists(path)) {
    throw InputError(
        path, 0, "already exists: --force replaces it, --out FILE writes to another file");
  }
  const AtomicFile tried(path, Links::Follow);  // now rather than when all has been measured
}

std::vector<ConvolutionKernel> kernels_of(const ProbeCommand& command) {
  std::vector<ConvolutionKernel> kernels;
  for (const std::string& name : command.kernels) {
    kernels.push_back(*partitioner::kernel_named(name));
  }
  return kernels;
}

std::vector<ConvolutionPoint> trials_of(const ProbeCommand& command,
                                        const Communicator& communicator) {
  if (command.model.empty()) {
    return standard_trials(kernels_of(command));
  }
  const partitioner::ModelFile model = load_model(command.model, communicator, printed_messages());
  const partitioner::Network network =
      agreed(communicator, [&] { return resized(model.network, command.size); });
  return model_trials(network, kernels_of(command));
}

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

std::vector<std::string> texts_of_ranks(const std::string& mine, const Communicator& communicator) {
  std::vector<std::string> texts;
  for (const auto& bytes : communicator.gather_all(bytes_of(mine.data(), std::ssize(mine)))) {
    texts.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return texts;
}

// Adds what ranks left out or doubt, an empty text where nothing: a sentence that begins with the
// device.
void note_left_out(const std::string& mine, const Communicator& communicator, ProbeResult& result) {
  const std::vector<std::string> sentences = texts_of_ranks(mine, communicator);
  for (int rank = 0; rank < communicator.size(); ++rank) {
    const std::string& sentence = sentences[static_cast<std::size_t>(rank)];
    if (!sentence.empty()) {
      result.left_out.push_back(fmt::format("{}: {}", result.cluster.device(rank).name, sentence));
    }
  }
}

// What each rank says of itself, on all of them.
ProbeResult gather_devices(const DeviceProfile& mine,
                           const std::string& left_out,
                           const Communicator& communicator) {
  ProbeResult result;
  ClusterProfile alone;
  alone.devices.push_back(mine);
  for (const std::string& text : texts_of_ranks(to_text(alone), communicator)) {
    result.cluster.devices.push_back(
        partitioner::parse_cluster_profile(text, "profile of a rank").devices[0]);
  }
  tell_apart(result.cluster.devices);
  note_left_out(left_out, communicator, result);
  return result;
}

// The meter of this rank's machine, and why there is no better one.
OpenedMeter meter_of_rank(const ProbeCommand& command, const Communicator& communicator) {
  const std::vector<std::string> hosts = texts_of_ranks(host_name(), communicator);
  return agreed(communicator, [&] {
    for (const MeterSpec& meter : command.meters) {
      if (meter.cluster) {
        throw InputError("--meter " + to_text(meter) +
                         ": a profile has the power of each device: name meters of boards, "
                         "HOST=METER");
      }
    }
    const RankMeters meters = meters_of_rank(command.meters, hosts, communicator.rank());
    if (std::count(hosts.begin(), hosts.end(), host_name()) == 1) {
      return open_meter(meters.board);
    }
    OpenedMeter none;
    if (!command.meters.empty()) {
      none.notes.emplace_back("several ranks run on this machine, whose meter shows all of them");
    }
    return none;
  });
}

// Watts of each rank's machine, and a sentence of each that has none.
void add_power(const OpenedMeter& opened,
               double seconds,
               const Communicator& communicator,
               ProbeResult& result) {
  const PowerMeasurement mine = measure_power(opened.meter, seconds, communicator);
  ClusterProfile alone;
  alone.devices.emplace_back().name = host_name();
  alone.devices[0].power = mine.power;
  const std::vector<std::string> texts = texts_of_ranks(to_text(alone), communicator);
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    result.cluster.devices[rank].power =
        partitioner::parse_cluster_profile(texts[rank], "power of a rank").devices[0].power;
  }
  std::string problem = mine.problem;
  for (const std::string& note : opened.notes) {
    problem += (problem.empty() ? "" : "; ") + note;
  }
  note_left_out(problem.empty() ? "" : "power: " + problem, communicator, result);
}

// This rank's part of its machine's free memory.
Index free_bytes_of_rank(const Communicator& communicator) {
  return std::clamp<Index>(
      free_memory_bytes() / communicator.ranks_on_this_machine(), 1, partitioner::kMostMemoryBytes);
}

// What links and all-reduces over them take.
void measure_wire(double seconds,
                  double processor_share,
                  const Communicator& communicator,
                  ClusterProfile& cluster) {
  LinkMeasurements links = measure_links(communicator, kLinkPart * seconds);
  links.message_s /= processor_share;
  const auto rates =
      communicator.of_ranks(std::min(links.send_bytes_per_s, links.receive_bytes_per_s));
  const double rate = *std::min_element(rates.begin(), rates.end());
  // How long kernels are kept from computing is what counts; processor time may pass beside them.
  links.byte_s = measure_byte_s_of_kernels(communicator, rate, kTransferPart * seconds)
                     .value_or(links.byte_s / processor_share);
  describe_links(links_of_ranks(links, communicator), cluster);
  cluster.all_reduces = measure_all_reduces(communicator, kAllReducePart * seconds);
}

// The memory of this process as it is.
Index trimmed_resident_bytes() {
  ::malloc_trim(0);  // what was freed
  return resident_bytes();
}

// What this process takes without a network, with the buffers of all connections between ranks.
Index connected_program_bytes(const Communicator& communicator) {
  constexpr double kSeconds = 0.2;
  if (communicator.size() > 1) {
    (void)measure_all_reduces(communicator, kSeconds);
  }
  return program_bytes_in_training();
}

// What a process of training may take: what is free when there are connections between ranks, and
// what this process has taken. `program_bytes` of it are not for a network.
void count_memory(Index program_bytes, const Communicator& communicator, ClusterProfile& cluster) {
  const Index resident = trimmed_resident_bytes();
  communicator.barrier();
  const auto programs = communicator.of_ranks(program_bytes);
  const auto all = communicator.of_ranks(free_bytes_of_rank(communicator) + resident);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    cluster.devices[rank].program_bytes = programs[rank];
    cluster.devices[rank].memory_bytes = all[rank];
  }
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
  const int mine = opened.meter && !opened.meter->description().estimated ? 1 : 0;
  const std::vector<int> all = communicator.of_ranks(mine);
  return std::find(all.begin(), all.end(), 1) != all.end();
}

ProbeResult probe(const std::vector<ConvolutionPoint>& trials,
                  const OpenedMeter& meter,
                  double all_seconds,
                  const Communicator& communicator) {
  const double power_s = any_measures(meter, communicator) ? kPowerPart * all_seconds : 0;
  const double seconds = all_seconds - power_s;
  const bool alone = communicator.size() == 1;
  const Index free_bytes = free_bytes_of_rank(communicator);
  const std::optional<QuotaPeriods> periods = quota_periods();
  communicator.barrier();  // all at the same time, as when they train
  const Index program_bytes = connected_program_bytes(communicator);
  DeviceMeasurements device =
      measure_device({trials, (alone ? 1 - kUpdatePart : kDevicePart) * seconds, free_bytes / 2});
  device.profile.name = host_name();
  device.profile.updated_weights_per_s = measure_updated_weights_per_s(kUpdatePart * seconds);
  ProbeResult result =
      gather_devices(device.profile, left_out_sentence(device.left_out), communicator);
  if (alone) {
    result.left_out.emplace_back("links: there is only one rank");
  } else {
    measure_wire(seconds, device.processor_share, communicator, result.cluster);
  }
  count_memory(program_bytes, communicator, result.cluster);
  note_left_out(fmt::format("{}",
                            fmt::join(doubts(result.cluster.device(communicator.rank()),
                                             limits_of_rank(periods, communicator)),
                                      "; ")),
                communicator,
                result);
  add_power(meter, power_s, communicator, result);
  return result;
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

void round_power(partitioner::PowerProfile& power) {
  power.idle_w = four_digits(power.idle_w);
  for (double& watts : power.busy_w) {
    watts = four_digits(watts);
  }
  for (std::optional<double>* watts : {&power.sending_w, &power.receiving_w}) {
    if (*watts) {
      *watts = four_digits(**watts);
    }
  }
}

void round_numbers(ClusterProfile& cluster) {
  const auto round = [](auto&... values) { ((values = four_digits(values)), ...); };
  const auto round_link = [&](partitioner::LinkProfile& link) {
    round(link.latency_s, link.bytes_per_s);
  };
  for (DeviceProfile& device : cluster.devices) {
    round(device.memory_bytes_per_s, device.message_s, device.copied_bytes_per_s);
    round(device.send_bytes_per_s, device.receive_bytes_per_s, device.updated_weights_per_s);
    round(device.direct_flops_per_s, device.winograd_flops_per_s);
    for (auto* rates : {&device.normalize, &device.activate, &device.pool, &device.elementwise}) {
      round(rates->forward_bytes_per_s, rates->backward_bytes_per_s);
    }
    for (ConvolutionPoint& point : device.convolutions) {
      round(point.forward_s, point.backward_data_s, point.backward_weights_s);
    }
    if (device.power) {
      round_power(*device.power);
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

// "pi1 pi2 pi3", of each kind of several devices.
std::vector<std::string> names_of_kinds(const ProbeResult& result) {
  std::vector<std::string> names;
  for (const std::vector<int>& kind : result.kinds) {
    if (kind.size() > 1) {
      std::string& text = names.emplace_back();
      for (const int rank : kind) {
        text += (text.empty() ? "" : " ") + result.cluster.device(rank).name;
      }
    }
  }
  return names;
}

std::string remarks(const ProbeCommand& command, const ProbeResult& result) {
  std::string text = fmt::format("# Measured by `tessera probe`: {}, {} each, {} s.\n",
                                 counted(result.cluster.size(), "rank"),
                                 counted(threads(), "thread"),
                                 command.seconds);
  text += command.model.empty() ? "# Convolutions: a standard set.\n"
                                : fmt::format("# Convolutions: those of {}{}.\n",
                                              command.model,
                                              command.size.empty() ? "" : " of " + command.size);
  for (const std::string& names : names_of_kinds(result)) {
    text += fmt::format("# Alike, described by the medians of their measurements: {}.\n", names);
  }
  for (const std::string& sentence : result.left_out) {
    text += fmt::format("# {}.\n", sentence);
  }
  return text + "#\n";
}

double mbit(double bytes_per_s) {
  return 8e-6 * bytes_per_s;
}

// "2.1 W idle, 3.0 to 5.4 W with 1 to 4 busy cores, 2.4 W sending, 2.3 W receiving (rapl)"
std::string words_of(const partitioner::PowerProfile& power) {
  std::string text = fmt::format("{:.2f} W idle, {:.2f} W", power.idle_w, power.busy_w.front());
  const auto cores = std::ssize(power.busy_w);
  text += cores == 1
              ? " with a busy core"
              : fmt::format(" to {:.2f} W with 1 to {} busy cores", power.busy_w.back(), cores);
  if (power.sending_w) {
    text += fmt::format(", {:.2f} W sending", *power.sending_w);
  }
  if (power.receiving_w) {
    text += fmt::format(", {:.2f} W receiving", *power.receiving_w);
  }
  text += fmt::format(" ({}", power.source);
  if (power.scope != partitioner::PowerScope::Device) {
    text += fmt::format(", of the {} alone", name_of(power.scope));
  }
  return text + (power.estimated ? ", an estimate)" : ")");
}

void print_profile(const ProbeResult& result, const std::string& path) {
  const ClusterProfile& cluster = result.cluster;
  TextTable table({{"device", Align::Left},
                   {"GFLOP/s direct"},
                   {"Winograd"},
                   {"memory GB/s"},
                   {"free"},
                   {"Mbit/s out"},
                   {"in"}});
  for (const DeviceProfile& device : cluster.devices) {
    const auto rate = [](double bytes_per_s) {
      return std::isinf(bytes_per_s) ? std::string("-") : fmt::format("{:.1f}", mbit(bytes_per_s));
    };
    table.add_row({device.name,
                   fmt::format("{:.2f}", 1e-9 * device.direct_flops_per_s),
                   fmt::format("{:.2f}", 1e-9 * device.winograd_flops_per_s),
                   fmt::format("{:.1f}", 1e-9 * device.memory_bytes_per_s),
                   readable_bytes(device.memory_bytes),
                   rate(device.send_bytes_per_s),
                   rate(device.receive_bytes_per_s)});
  }
  fmt::print("{}", table.text());
  if (cluster.size() > 1) {
    fmt::print("link: {:.3f} ms, {:.1f} Mbit/s each way; {}\n",
               1e3 * cluster.link.latency_s,
               mbit(cluster.link.bytes_per_s),
               cluster.exceptions.empty()
                   ? "the same between all devices"
                   : fmt::format("{} directions differ, see the file", cluster.exceptions.size()));
  }
  for (const DeviceProfile& device : cluster.devices) {
    if (device.power) {
      fmt::print("power of {}\n", printable(device.name + ": " + words_of(*device.power)));
    }
  }
  for (const std::string& names : names_of_kinds(result)) {
    fmt::print("alike, described by their medians: {}\n", printable(names));
  }
  for (const std::string& sentence : result.left_out) {
    fmt::print("{}\n", printable(sentence));
  }
  fmt::print("written: {}\n", printable(path));
}

nlohmann::ordered_json power_json(const std::optional<partitioner::PowerProfile>& power) {
  const auto number = [](const std::optional<double>& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
  };
  return !power ? nlohmann::ordered_json()
                : nlohmann::ordered_json{{"source", power->source},
                                         {"scope", name_of(power->scope)},
                                         {"estimated", power->estimated},
                                         {"relative_error", number(power->relative_error)},
                                         {"idle_w", power->idle_w},
                                         {"busy_w", power->busy_w},
                                         {"sending_w", number(power->sending_w)},
                                         {"receiving_w", number(power->receiving_w)}};
}

void print_profile_json(const ProbeResult& result, const std::string& path) {
  nlohmann::ordered_json devices = nlohmann::ordered_json::array();
  for (const DeviceProfile& device : result.cluster.devices) {
    devices.push_back({{"name", device.name},
                       {"direct_flops_per_s", device.direct_flops_per_s},
                       {"winograd_flops_per_s", device.winograd_flops_per_s},
                       {"memory_bytes_per_s", device.memory_bytes_per_s},
                       {"memory_bytes", device.memory_bytes},
                       {"send_bytes_per_s", device.send_bytes_per_s},
                       {"receive_bytes_per_s", device.receive_bytes_per_s},
                       {"power", power_json(device.power)}});
  }
  const nlohmann::ordered_json all{{"devices", devices},
                                   {"alike", result.kinds},
                                   {"link",
                                    {{"latency_s", result.cluster.link.latency_s},
                                     {"bytes_per_s", result.cluster.link.bytes_per_s}}},
                                   {"left_out", result.left_out},
                                   {"file", path}};
  fmt::print("{}\n", all.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace));
}

}  // namespace

void run_probe(const ProbeCommand& command, const Communicator& communicator) {
  const bool writes = communicator.rank() == 0;
  throw_agreed(communicator, writes ? problem_of([&] { expect_writable(command); }) : std::nullopt);
  const std::vector<ConvolutionPoint> trials = trials_of(command, communicator);
  throw_agreed(communicator, problem_of([&] {
                 if (command.threads > 0) {
                   set_threads(command.threads);
                 }
               }));
  const OpenedMeter meter = meter_of_rank(command, communicator);
  ProbeResult result = probe(trials, meter, static_cast<double>(command.seconds), communicator);
  round_numbers(result.cluster);
  if (!command.apart) {
    result.kinds = alike_devices(result.cluster);
  }
  ClusterProfile described = result.cluster;
  describe_alike(result.kinds, described);
  round_numbers(described);  // half way between two numbers
  const std::string path = file_to_write(command);
  const std::string text = remarks(command, result) + to_text(described);
  expects(partitioner::parse_cluster_profile(text, path) == described,
          "a profile that is written can be read");
  throw_agreed(
      communicator,
      writes ? problem_of([&] { write_atomically(path, text, Links::Follow); }) : std::nullopt);
  if (!writes) {
    return;
  }
  if (command.json) {
    print_profile_json(result, path);
  } else {
    print_profile(result, path);
  }
}

}  // namespace tessera::engine
