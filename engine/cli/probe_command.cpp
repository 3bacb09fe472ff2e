#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/cli/commands.h"
#include "engine/cli/messages.h"
#include "engine/comm/agreement.h"
#include "engine/files/atomic_file.h"
#include "engine/ops/loops/threads.h"
#include "engine/probe/cluster_probe.h"
#include "engine/probe/probe_trials.h"
#include "engine/session/memory_needs.h"
#include "engine/session/model_setup.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/quantities.h"
#include "partitioner/base/text_table.h"

namespace tessera::engine {

namespace {

using partitioner::ClusterProfile;
using partitioner::DeviceProfile;

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

// "pi1 pi2 pi3", of each kind of several devices.
std::vector<std::string> names_of_kinds(const ProbedCluster& result) {
  std::vector<std::string> names;
  for (const std::vector<int>& kind : result.kinds) {
    if (kind.size() > 1) {
      std::string& text = names.emplace_back();
      for (const int rank : kind) {
        text += (text.empty() ? "" : " ") + result.measured.device(rank).name;
      }
    }
  }
  return names;
}

std::string remarks(const ProbeCommand& command, const ProbedCluster& result) {
  std::string text = fmt::format("# Measured by `tessera probe`: {}, {} each, {} s.\n",
                                 counted(result.measured.size(), "rank"),
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

void print_profile(const ProbedCluster& result, const std::string& path) {
  const ClusterProfile& cluster = result.measured;
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

void print_profile_json(const ProbedCluster& result, const std::string& path) {
  nlohmann::ordered_json devices = nlohmann::ordered_json::array();
  for (const DeviceProfile& device : result.measured.devices) {
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
                                    {{"latency_s", result.measured.link.latency_s},
                                     {"bytes_per_s", result.measured.link.bytes_per_s}}},
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
  const ProbedCluster result = probe_cluster({.trials = trials,
                                              .meter = meter_of_rank(command.meters, communicator),
                                              .seconds = static_cast<double>(command.seconds),
                                              .program_bytes = program_bytes_in_training,
                                              .apart = command.apart},
                                             communicator);
  const std::string path = file_to_write(command);
  const std::string text = remarks(command, result) + to_text(result.described);
  expects(partitioner::parse_cluster_profile(text, path) == result.described,
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
