#include <fmt/format.h>

#include "engine/cli/commands.h"
#include "engine/cli/setup.h"
#include "engine/execution/kernel_trial.h"
#include "engine/files/atomic_file.h"
#include "partitioner/plan_report.h"

namespace engine {

namespace {

// With no number of ranks given: as many as the partition wants.
int ranks_of(const PlanCommand& command) {
  if (command.ranks > 0) {
    return command.ranks;
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

}  // namespace

void run_plan(const PlanCommand& command) {
  const partitioner::ModelFile model = load_model(command.model, Communicator::self());
  const partitioner::Network network = resized(model.network, command.size);
  const Index batch =
      command.batch > 0 ? command.batch : model.training.batch / model.training.subdivisions;
  partitioner::Partition partition =
      choose_partition(network, command.partition, ranks_of(command), batch);
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
  fmt::print("{}",
             command.json ? plan_json(network, plan, options) + "\n"
                          : plan_table(network, plan, partition, options));
}

}  // namespace engine
