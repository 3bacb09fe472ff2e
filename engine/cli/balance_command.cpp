#include <chrono>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <vector>

#include "engine/cli/commands.h"
#include "engine/files/atomic_file.h"
#include "partitioner/balance/balance.h"
#include "partitioner/balance/data_map.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/quantities.h"
#include "partitioner/cfg/model_file.h"
#include "partitioner/cost/cost_model.h"

namespace tessera::engine {

namespace {

using nlohmann::ordered_json;
using partitioner::Balance;
using partitioner::BalanceProblem;
using partitioner::ClusterProfile;
using partitioner::InputError;

template <class Number>
void expect_one_per_device(const std::vector<Number>& numbers,
                           const char* option,
                           const ClusterProfile& cluster) {
  if (numbers.size() != cluster.devices.size()) {
    throw InputError(fmt::format(
        "{}: {} numbers, and the cluster has {} devices", option, numbers.size(), cluster.size()));
  }
}

// Seconds that a device takes by itself for a sample, as the cost model says.
std::vector<double> modelled_seconds(const BalanceCommand& command, const ClusterProfile& cluster) {
  const partitioner::ModelFile model = partitioner::read_model(command.model);
  const Index batch = model.training.batch / model.training.subdivisions;
  const partitioner::Partition alone = partitioner::single_tile(model.network);
  std::vector<double> seconds;
  for (const partitioner::DeviceProfile& device : cluster.devices) {
    ClusterProfile single;
    single.devices = {device};
    seconds.push_back(partitioner::step_cost(model.network, alone, batch, single, {}).total() /
                      static_cast<double>(batch));
  }
  return seconds;
}

BalanceProblem problem_of(const BalanceCommand& command, const ClusterProfile& cluster) {
  if (command.model.empty() == command.seconds_per_sample.empty()) {
    throw InputError(
        "give either MODEL, whose training time is predicted, or --seconds-per-sample");
  }
  const std::vector<double> seconds = command.seconds_per_sample.empty()
                                          ? modelled_seconds(command, cluster)
                                          : command.seconds_per_sample;
  expect_one_per_device(command.samples, "--samples", cluster);
  expect_one_per_device(seconds, "--seconds-per-sample", cluster);
  if (!command.capacity.empty()) {
    expect_one_per_device(command.capacity, "--capacity", cluster);
  }
  BalanceProblem problem = partitioner::balance_problem(cluster);
  problem.sample_bytes = command.sample_bytes;
  problem.epochs = command.epochs;
  for (std::size_t i = 0; i < problem.size(); ++i) {
    problem.devices[i].samples = command.samples[i];
    problem.devices[i].seconds_per_sample = seconds[i];
    if (!command.capacity.empty()) {
      problem.devices[i].capacity = command.capacity[i];
    }
  }
  return problem;
}

struct Solved {
  Balance balance;
  double solve_s = 0;
};

Solved solved(const BalanceProblem& problem, bool exactly) {
  const auto start = std::chrono::steady_clock::now();
  Balance balance = exactly ? balance_exactly(problem) : balance_greedily(problem);
  return {std::move(balance),
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
}

std::string json_of(const Solved& chosen, const std::string& method) {
  ordered_json moves = ordered_json::array();
  for (const partitioner::SampleMove& move : chosen.balance.moves) {
    moves.push_back({move.from, move.to, move.count});
  }
  return ordered_json{{"moves", moves},
                      {"t_move_s", chosen.balance.move_s},
                      {"t_epoch_s", chosen.balance.epoch_s},
                      {"total_s", chosen.balance.total_s},
                      {"lower_bound_s", chosen.balance.lower_bound_s},
                      {"method", method},
                      {"solve_s", chosen.solve_s}}
             .dump() +
         "\n";
}

void print_methods(const Solved& exact, const Solved& greedy, const Balance& unmoved) {
  fmt::print("{:<12} {:>12} {:>12} {:>12} {:>8} {:>10}\n",
             "method",
             "moving, s",
             "an epoch, s",
             "total, s",
             "gap, %",
             "solved, ms");
  const auto row = [](const char* name, const Solved& of) {
    fmt::print("{:<12} {:>12.6g} {:>12.6g} {:>12.6g} {:>8.2f} {:>10.1f}\n",
               name,
               of.balance.move_s,
               of.balance.epoch_s,
               of.balance.total_s,
               100 * of.balance.gap(),
               1000 * of.solve_s);
  };
  row("exact", exact);
  row("greedy", greedy);
  fmt::print("{:<12} {:>12} {:>12.6g} {:>12.6g} {:>8.2f}\n",
             "no moves",
             "",
             unmoved.epoch_s,
             unmoved.total_s,
             100 * unmoved.gap());
}

void print_devices(const BalanceProblem& problem,
                   const ClusterProfile& cluster,
                   const Balance& chosen) {
  const std::vector<Index> after = samples_after(problem, chosen.moves);
  fmt::print("\n{:<16} {:>12} {:>12} {:>14} {:>12}\n",
             "device",
             "before",
             "after",
             "s per sample",
             "an epoch, s");
  for (std::size_t i = 0; i < problem.size(); ++i) {
    const partitioner::BalanceDevice& device = problem.devices[i];
    fmt::print("{:<16} {:>12} {:>12} {:>14.4g} {:>12.4g}\n",
               partitioner::printable(cluster.devices[i].name),
               device.samples,
               after[i],
               device.seconds_per_sample,
               device.seconds_per_sample * static_cast<double>(after[i]));
  }
  if (!chosen.moves.empty()) {
    fmt::print("\n");
  }
  for (const partitioner::SampleMove& move : chosen.moves) {
    fmt::print("{} -> {}: {} samples\n",
               partitioner::printable(cluster.device(move.from).name),
               partitioner::printable(cluster.device(move.to).name),
               move.count);
  }
}

}  // namespace

void run_balance(const BalanceCommand& command) {
  const ClusterProfile cluster = partitioner::read_cluster_profile(command.cluster);
  const BalanceProblem problem = problem_of(command, cluster);
  const Solved exact = solved(problem, true);
  Solved greedy = solved(problem, false);
  Balance unmoved = balance_of(problem, {});
  greedy.balance.lower_bound_s = exact.balance.lower_bound_s;
  unmoved.lower_bound_s = exact.balance.lower_bound_s;
  const Solved& chosen = command.method == "greedy" ? greedy : exact;
  if (!command.out.empty()) {
    write_atomically(command.out, to_text(data_map(problem, chosen.balance)));
  }
  if (command.json) {
    fmt::print("{}", json_of(chosen, command.method));
    return;
  }
  print_methods(exact, greedy, unmoved);
  print_devices(problem, cluster, chosen.balance);
}

}  // namespace tessera::engine
