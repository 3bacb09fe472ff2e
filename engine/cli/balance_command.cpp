#include <ctime>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "engine/cli/commands.h"
#include "engine/files/atomic_file.h"
#include "partitioner/balance/balance.h"
#include "partitioner/balance/class_balance.h"
#include "partitioner/balance/data_map.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/quantities.h"
#include "partitioner/cfg/model_file.h"
#include "partitioner/text/device_names.h"

namespace tessera::engine {

namespace {

using nlohmann::ordered_json;
using partitioner::Balance;
using partitioner::BalanceProblem;
using partitioner::ClusterProfile;

template <class Number>
void expect_one_per_device(const std::vector<Number>& numbers,
                           const char* option,
                           const ClusterProfile& cluster) {
  if (numbers.size() != cluster.devices.size()) {
    throw InputError(fmt::format(
        "{}: {} numbers, and the cluster has {} devices", option, numbers.size(), cluster.size()));
  }
}

std::vector<double> modelled_seconds(const BalanceCommand& command, const ClusterProfile& cluster) {
  const partitioner::ModelFile model = partitioner::read_model(command.model);
  const Index passes = model.training.subdivisions;
  return seconds_per_sample(model.network,
                            choose_kernels(model.network, partitioner::KernelRule::Usual),
                            cluster,
                            model.training.batch / passes,
                            {.passes = passes});
}

BalanceProblem balance_problem(const BalanceCommand& command,
                               const ClusterProfile& cluster,
                               const std::vector<Index>& samples) {
  if (command.model.empty() == command.seconds_per_sample.empty()) {
    throw InputError(
        "give either MODEL, whose training time is predicted, or --seconds-per-sample");
  }
  const std::vector<double> seconds = command.seconds_per_sample.empty()
                                          ? modelled_seconds(command, cluster)
                                          : command.seconds_per_sample;
  expect_one_per_device(samples, "--samples", cluster);
  expect_one_per_device(seconds, "--seconds-per-sample", cluster);
  if (!command.capacity.empty()) {
    expect_one_per_device(command.capacity, "--capacity", cluster);
  }
  BalanceProblem problem = partitioner::balance_problem(cluster);
  problem.sample_bytes = command.sample_bytes;
  problem.epochs = command.epochs;
  problem.shard = command.shard_size;
  for (std::size_t i = 0; i < problem.size(); ++i) {
    problem.devices[i].samples = samples[i];
    problem.devices[i].seconds_per_sample = seconds[i];
    if (!command.capacity.empty()) {
      problem.devices[i].capacity = command.capacity[i];
    }
  }
  return problem;
}

struct Solved {
  Balance balance;
  std::vector<partitioner::ClassMove> class_moves;  // where classes count
  double solve_s = 0;
};

// With the processor time that it takes.
template <class Solve>
Solved solved(Solve solve) {
  const std::clock_t start = std::clock();
  Solved result = solve();
  result.solve_s = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  return result;
}

ordered_json solution_json(const Solved& chosen, const std::string& method) {
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
                      {"solve_s", chosen.solve_s}};
}

// Whose times are in a table.
struct Row {
  const char* name;
  const Balance& balance;
  std::optional<double> solve_s = {};
  bool has_gap = true;
};

void print_rows(const std::vector<Row>& rows) {
  fmt::print("{:<12} {:>12} {:>12} {:>12} {:>8} {:>10}\n",
             "method",
             "moving, s",
             "an epoch, s",
             "total, s",
             "gap, %",
             "solved, ms");
  for (const Row& row : rows) {
    const Balance& balance = row.balance;
    fmt::print("{:<12} {:>12} {:>12.6g} {:>12.6g} {:>8} {:>10}\n",
               row.name,
               row.solve_s ? fmt::format("{:.6g}", balance.move_s) : "",
               balance.epoch_s,
               balance.total_s,
               row.has_gap ? fmt::format("{:.2f}", 100 * balance.gap()) : "",
               row.solve_s ? fmt::format("{:.1f}", 1000 * *row.solve_s) : "");
  }
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
               printable(cluster.devices[i].name),
               device.samples,
               after[i],
               device.seconds_per_sample,
               device.seconds_per_sample * static_cast<double>(after[i]));
  }
}

void print_moves(const ClusterProfile& cluster, const Balance& chosen) {
  if (!chosen.moves.empty()) {
    fmt::print("\n");
  }
  for (const partitioner::SampleMove& move : chosen.moves) {
    fmt::print("{} -> {}: {} samples\n",
               printable(cluster.device(move.from).name),
               printable(cluster.device(move.to).name),
               move.count);
  }
}

void write_map(const std::string& path, const partitioner::DataMap& map) {
  if (!path.empty()) {
    write_atomically(path, to_text(map), Links::Follow);
  }
}

Solved solve_exactly(const BalanceProblem& problem) {
  return solved([&] { return Solved{balance_exactly(problem), {}, 0}; });
}

void balance_all(const BalanceCommand& command,
                 const ClusterProfile& cluster,
                 const BalanceProblem& problem) {
  const Solved exact = solve_exactly(problem);
  Solved greedy = solved([&] { return Solved{balance_greedily(problem), {}, 0}; });
  Balance unmoved = balance_of(problem, {});
  greedy.balance.lower_bound_s = exact.balance.lower_bound_s;
  unmoved.lower_bound_s = exact.balance.lower_bound_s;
  const Solved& chosen = command.method == "greedy" ? greedy : exact;
  write_map(command.out, data_map(problem, chosen.balance));
  if (command.json) {
    fmt::print("{}\n", solution_json(chosen, command.method).dump());
    return;
  }
  print_rows({{"exact", exact.balance, exact.solve_s},
              {"greedy", greedy.balance, greedy.solve_s},
              {"no moves", unmoved}});
  print_devices(problem, cluster, chosen.balance);
  print_moves(cluster, chosen.balance);
}

void balance_by_class(const BalanceCommand& command,
                      const ClusterProfile& cluster,
                      const BalanceProblem& problem,
                      const partitioner::ClassSamples& classes) {
  if (!partitioner::can_balance_classes()) {
    throw InputError(
        "--classes: Clp, which solves the linear program of it, is not installed or was not when "
        "this "
        "program was built: install coinor-libclp-dev and build again");
  }
  if (command.method == "greedy") {
    throw InputError("--method greedy knows nothing of classes: leave it out, or --classes");
  }
  const Solved by_class = solved([&] {
    partitioner::ClassBalance found = balance_classes(problem, classes, command.class_tolerance);
    return Solved{std::move(found.balance), std::move(found.moves), 0};
  });
  const Solved any = solve_exactly(problem);
  write_map(command.out, data_map(classes, {by_class.balance, by_class.class_moves}));
  if (command.json) {
    ordered_json json = solution_json(by_class, command.method);
    json["class_moves"] = ordered_json::array();
    for (const partitioner::ClassMove& move : by_class.class_moves) {
      json["class_moves"].push_back(
          {move.from, move.to, classes.names[static_cast<std::size_t>(move.of_class)], move.count});
    }
    json["total_without_classes_s"] = any.balance.total_s;
    fmt::print("{}\n", json.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
    return;
  }
  print_rows({{"by class", by_class.balance, by_class.solve_s},
              {"any class", any.balance, any.solve_s},
              {"no moves", balance_of(problem, {}), {}, false}});
  fmt::print(
      "\nshares of classes differ from those of all samples by up to {:.0f} % now, {:.0f} % "
      "when moved\n",
      100 * largest_deviation(classes, classes.counts),
      100 * largest_deviation(classes, samples_after(classes, by_class.class_moves)));
  print_devices(problem, cluster, by_class.balance);
  print_moves(cluster, by_class.balance);
}

std::vector<Index> samples_of(const partitioner::ClassSamples& classes,
                              const std::vector<Index>& given) {
  std::vector<Index> samples;
  for (std::size_t device = 0; device < classes.devices(); ++device) {
    samples.push_back(classes.of_device(device));
  }
  if (!given.empty() && given != samples) {
    throw InputError("--samples: other numbers than --classes has: leave out --samples");
  }
  return samples;
}

}  // namespace

void run_balance(const BalanceCommand& command) {
  const ClusterProfile cluster = partitioner::read_cluster_profile(command.cluster);
  if (command.classes.empty()) {
    if (command.samples.empty()) {
      throw InputError("give --samples, or --classes with the samples of each class");
    }
    balance_all(command, cluster, balance_problem(command, cluster, command.samples));
    return;
  }
  const partitioner::ClassSamples classes =
      partitioner::read_class_samples(command.classes, device_names(cluster));
  balance_by_class(command,
                   cluster,
                   balance_problem(command, cluster, samples_of(classes, command.samples)),
                   classes);
}

}  // namespace tessera::engine
