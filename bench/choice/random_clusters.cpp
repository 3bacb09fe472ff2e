#include "bench/choice/random_clusters.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fstream>
#include <iomanip>
#include <numbers>

#include "partitioner/base/errors.h"
#include "partitioner/cost/board_power.h"
#include "partitioner/search/device_sets.h"

namespace tessera::bench {

using partitioner::Candidate;
using partitioner::ClusterProfile;
using partitioner::DeviceProfile;
using partitioner::Network;

namespace {

constexpr std::array kBoards = {"pi3b", "pi3b+", "pi4b", "pi400", "pi5"};

// A board's power as somebody measured it, and computing as fast as any small board does.
DeviceProfile random_kind(Draw& draw, double link_bits_per_s) {
  const double flops_per_s = draw.between(1.5e9, 20e9);
  DeviceProfile device =
      partitioner::equal_devices({.direct_flops_per_s = flops_per_s,
                                  .winograd_flops_per_s = 2 * flops_per_s,
                                  .link_bits_per_s = link_bits_per_s,
                                  .message_s = 50e-6 * 4.5e9 / flops_per_s,
                                  .memory_bytes_per_s = 2e9 * std::sqrt(flops_per_s / 4.5e9),
                                  .board = kBoards[static_cast<std::size_t>(
                                      draw.between(0, static_cast<int>(kBoards.size()) - 1))]})
          .devices.front();
  device.power = power_profile(partitioner::board_power(device.board));
  device.power->estimated = false;
  device.power->relative_error = kPowerError;
  return device;
}

ClusterProfile random_profile(Draw& draw) {
  const double link_bits_per_s = draw.between(10e6, 1000e6);
  const int devices = draw.between(2, 12);
  const int kinds = draw.between(1, std::min(3, devices));
  ClusterProfile cluster =
      partitioner::equal_devices({.count = devices, .link_bits_per_s = link_bits_per_s});
  std::vector<DeviceProfile> of_kinds;
  for (int kind = 0; kind < kinds; ++kind) {
    of_kinds.push_back(random_kind(draw, link_bits_per_s));
  }
  for (int device = 0; device < devices; ++device) {
    const int kind = device < kinds ? device : draw.between(0, kinds - 1);
    cluster.devices[static_cast<std::size_t>(device)] = of_kinds[static_cast<std::size_t>(kind)];
    cluster.devices[static_cast<std::size_t>(device)].name = fmt::format("device{}", device);
  }
  return cluster;
}

void slow_down(DeviceProfile& device, double times) {
  for (double* rate : {&device.memory_bytes_per_s,
                       &device.copied_bytes_per_s,
                       &device.direct_flops_per_s,
                       &device.winograd_flops_per_s,
                       &device.updated_weights_per_s}) {
    *rate /= times;
  }
  for (partitioner::PassRates* rates :
       {&device.normalize, &device.activate, &device.pool, &device.elementwise}) {
    rates->forward_bytes_per_s /= times;
    rates->backward_bytes_per_s /= times;
  }
}

// The cluster with devices that are off by errors[device] standard deviations of `spread`, and
// their powers by power_errors[device] of kPowerError.
ClusterProfile true_cluster(ClusterProfile cluster,
                            const std::vector<double>& errors,
                            const std::vector<double>& power_errors,
                            double spread) {
  for (std::size_t device = 0; device < cluster.devices.size(); ++device) {
    slow_down(cluster.devices[device], std::exp(spread * errors[device]));
    partitioner::PowerProfile& power = cluster.devices[device].power.value();
    const double times = std::exp(kPowerError * power_errors[device]);
    power.idle_w *= times;
    for (double& watts : power.busy_w) {
      watts *= times;
    }
  }
  return cluster;
}

std::vector<double> normals(Draw& draw, int count) {
  std::vector<double> numbers(static_cast<std::size_t>(count));
  std::generate(numbers.begin(), numbers.end(), [&draw] { return draw.normal(); });
  return numbers;
}

double parameter_bytes(const Network& network) {
  double sum = 0;
  for (int layer = 0; layer < static_cast<int>(network.layers.size()); ++layer) {
    const partitioner::LayerParameters of = layer_parameters(network, layer);
    for (const partitioner::ParameterShape& shape : {of.weight, of.bias, of.scale}) {
      sum += static_cast<double>(sizeof(float)) * static_cast<double>(shape.channels * shape.row);
    }
  }
  return sum;
}

partitioner::SearchOptions search_options() {
  partitioner::SearchOptions options;
  options.batch = kBatch;
  options.counts_memory = false;
  options.longest_group = 2;
  options.candidates = 1;
  return options;
}

}  // namespace

Draw::Draw(std::uint64_t seed, std::uint64_t stream, std::uint64_t substream) {
  const std::array<std::uint64_t, 3> numbers = {seed, stream, substream};
  std::seed_seq sequence(numbers.begin(), numbers.end());
  generator_.seed(sequence);
}

double Draw::uniform() {
  return (static_cast<double>(generator_() >> 11U) + 0.5) * 0x1p-53;
}

double Draw::normal() {
  const double radius = std::sqrt(-2 * std::log(uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

int Draw::between(int least, int most) {
  return least + static_cast<int>(uniform() * (most - least + 1));
}

double Draw::between(double least, double most) {
  return least * std::pow(most / least, uniform());
}

SimulatedCluster random_cluster(const Network& network, std::uint64_t seed, std::uint64_t number) {
  Draw draw(seed, number);
  const ClusterProfile cluster = random_profile(draw);
  const std::vector<double> errors = normals(draw, cluster.size());
  const std::vector<double> power_errors = normals(draw, cluster.size());
  std::array<ClusterProfile, kErrors.size()> true_clusters;
  for (std::size_t error = 0; error < kErrors.size(); ++error) {
    true_clusters[error] =
        true_cluster(cluster, errors, power_errors, kErrors[error] * std::sqrt(0.5));
  }
  const partitioner::SearchOptions options = search_options();
  const auto find = [&](const std::vector<int>& devices) -> std::optional<Candidate> {
    return search_partition(network, devices_of(cluster, devices), options).candidates.at(0);
  };
  partitioner::DeviceSetOptions set_options;
  set_options.most = 1000;  // all of them, so that they are the same for each objective
  SimulatedCluster simulated;
  simulated.parameters_s = parameter_bytes(network) / cluster.link.bytes_per_s;
  for (const partitioner::DeviceSet& set :
       search_device_sets(cluster, set_options, partitioner::one_by_one(find)).sets) {
    const double error_of_set = draw.normal();
    const Candidate& found = set.found.value();
    if (busy_ranks(found.partition).size() < set.devices.size()) {
      continue;  // `choose` leaves out sets whose partition leaves devices without work
    }
    SimulatedSet& each = simulated.sets.emplace_back();
    each.devices = set.devices;
    each.step_s = found.predicted_s();
    each.power_w = found.energy.value().power_w();
    for (std::size_t error = 0; error < kErrors.size(); ++error) {
      const Candidate is = evaluated(
          network, devices_of(true_clusters[error], set.devices), options, found.partition);
      each.truth[error] = {
          is.predicted_s() * std::exp(kErrors[error] * std::sqrt(0.5) * error_of_set),
          is.energy.value().power_w()};
    }
  }
  return simulated;
}

void write_clusters(const std::string& path, const std::vector<SimulatedCluster>& clusters) {
  std::ofstream file(path);
  file << std::setprecision(17);
  for (const SimulatedCluster& cluster : clusters) {
    file << cluster.parameters_s << ' ' << cluster.sets.size() << '\n';
    for (const SimulatedSet& set : cluster.sets) {
      file << set.devices.size();
      for (const int device : set.devices) {
        file << ' ' << device;
      }
      file << ' ' << set.step_s << ' ' << set.power_w;
      for (const TrueSet& truth : set.truth) {
        file << ' ' << truth.step_s << ' ' << truth.power_w;
      }
      file << '\n';
    }
  }
  file.close();
  if (!file) {
    throw InputError(path + " cannot be written");
  }
}

std::vector<SimulatedCluster> read_clusters(const std::string& path) {
  constexpr std::size_t kMost = 1 << 20;  // sets of a cluster, devices of a set
  std::ifstream file(path);
  std::vector<SimulatedCluster> clusters;
  double parameters_s = 0;
  std::size_t count = 0;
  while (file >> parameters_s >> count && count < kMost) {
    SimulatedCluster& cluster = clusters.emplace_back();
    cluster.parameters_s = parameters_s;
    cluster.sets.resize(count);
    for (SimulatedSet& set : cluster.sets) {
      std::size_t devices = 0;
      file >> devices;
      set.devices.resize(std::min(devices, kMost));
      for (int& device : set.devices) {
        file >> device;
      }
      file >> set.step_s >> set.power_w;
      for (TrueSet& truth : set.truth) {
        file >> truth.step_s >> truth.power_w;
      }
    }
    if (!file) {
      break;
    }
  }
  if (!file.eof() || clusters.empty()) {
    throw InputError(path, 0, "these are no clusters that --sets has written");
  }
  return clusters;
}

}  // namespace tessera::bench
