#include <chrono>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/cli/commands.h"
#include "engine/cli/planning.h"
#include "engine/cli/setup.h"
#include "engine/execution/kernel_trial.h"
#include "engine/files/atomic_file.h"
#include "partitioner/errors.h"
#include "partitioner/explain.h"
#include "partitioner/plan_report.h"

namespace engine {

namespace {

// With no number of ranks given: as many as the partition wants, or as the cluster has devices.
int ranks_of(const PlanCommand& command) {
  if (command.ranks > 0) {
    return command.ranks;
  }
  if (command.partition.automatic()) {
    if (const auto devices = profiled_devices(command.partition)) {
      return *devices;
    }
    throw partitioner::InputError(
        "--partition auto: for how many devices? Say --ranks N, or describe them with --cluster");
  }
  if (!command.partition.file.empty()) {
    return partitioner::read_partition(command.partition.file).ranks;
  }
  if (!command.partition.grid.empty()) {
    const auto [rows, cols] = partitioner::parse_grid(command.partition.grid, "--grid");
    return static_cast<int>(rows * cols);
  }
  return 1;
}

// --batch is that of a step of one pass.
Workload workload_of(const PlanCommand& command, const partitioner::ModelFile& model) {
  const partitioner::TrainingOptions& training = model.training;
  return {.model = command.model,
          .batch = command.batch > 0 ? command.batch : training.batch / training.subdivisions,
          .passes = command.batch > 0 ? 1 : training.subdivisions,
          .adam = training.adam};
}

partitioner::Explanation explanation(const PlanCommand& command,
                                     const partitioner::Network& network,
                                     const partitioner::ClusterProfile& cluster,
                                     const Workload& workload,
                                     const partitioner::Partition& partition) {
  partitioner::SearchOptions options =
      search_options(network, command.partition, workload, partition.ranks);
  options.kernels = partition.kernels;
  options.reader = partition.reader;
  options.sums = partition.sums;
  return {compare_with_rivals(network, cluster, options, partition),
          compare_device_counts(network, cluster, options)};
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void print_scale(const PlanCommand& command,
                 const partitioner::Network& network,
                 const Workload& workload) {
  const int described = profiled_devices(command.partition).value_or(1);
  const auto cluster = described_cluster(command.partition, described);
  partitioner::ScaleTable table;
  for (int devices = 1; devices <= command.scale; devices *= 2) {
    const auto part = cluster_of_size(network, cluster, devices);
    partitioner::SearchOptions options =
        search_options(network, command.partition, workload, devices);
    options.counts_memory = false;
    options.candidates = 1;
    const auto start = std::chrono::steady_clock::now();
    const auto result = search_partition(network, part, options);
    const double planning_s = seconds_since(start);
    table.add(devices,
              time_shares(network, part, options, result.candidates.front().partition),
              planning_s);
  }
  fmt::print("{}", table.text());
}

}  // namespace

void run_plan(const PlanCommand& command) {
  const partitioner::ModelFile model = load_model(command.model, Communicator::self());
  const partitioner::Network network = resized(model.network, command.size);
  const Workload workload = workload_of(command, model);
  if (command.scale > 0) {
    print_scale(command, network, workload);
    return;
  }
  const Index batch = workload.batch;
  const int ranks = ranks_of(command);
  std::optional<partitioner::ClusterProfile> cluster;
  if (command.partition.automatic() || command.explain) {
    cluster = described_cluster(command.partition, ranks);
  }
  partitioner::Partition partition =
      command.partition.automatic()
          ? search_automatically(network, *cluster, command.partition, workload)
          : choose_partition(network, command.partition, ranks, batch);
  partitioner::Plan plan = make_plan(network, partition, batch);
  if (command.partition.kernels == kMeasuredKernels) {
    partition.kernels = fastest_kernels(network, plan);
    limit_workspace(network, command.partition, batch, partition);
    plan = make_plan(network, partition, batch);
  }
  for (const std::string& violation : check(network, plan)) {
    fmt::print(stderr, "tessera: warning: the plan breaks an invariant: {}\n", violation);
  }
  const partitioner::ReportOptions options =
      report_options(command.model, network, plan, model.training.adam);
  if (!command.save.empty()) {
    write_atomically(command.save, to_text(partition));
  }
  if (!command.explain) {
    fmt::print("{}",
               command.json ? plan_json(network, plan, options) + "\n"
                            : plan_table(network, plan, partition, options));
    return;
  }
  const partitioner::Explanation why = explanation(command, network, *cluster, workload, partition);
  if (command.json) {
    auto json = nlohmann::ordered_json::parse(plan_json(network, plan, options));
    json["explanation"] = nlohmann::ordered_json::parse(explanation_json(why));
    fmt::print("{}\n", json.dump());
  } else {
    fmt::print("{}\n{}", plan_table(network, plan, partition, options), explanation_table(why));
  }
}

}  // namespace engine
