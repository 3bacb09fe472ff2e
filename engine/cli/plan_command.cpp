#include <fmt/format.h>

#include "engine/cli/commands.h"
#include "engine/cli/setup.h"
#include "engine/files/atomic_file.h"
#include "engine/layers/workspace.h"
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
  const Index batch = command.batch > 0 ? command.batch : model.training.batch / model.training.subdivisions;
  const partitioner::Partition partition = choose_partition(network, command.partition, ranks_of(command), batch);
  const partitioner::Plan plan = make_plan(network, partition, batch);
  for (const std::string& violation : check(network, plan)) {
    fmt::print(stderr, "tessera: warning: the plan breaks an invariant: {}\n", violation);
  }
  partitioner::ReportOptions options;
  options.model = command.model;
  options.memory.adam = model.training.adam;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    options.workspace_bytes.push_back(workspace_size(network, plan, rank, true).elements() * options.memory.scalar_bytes);
  }
  if (!command.save.empty()) {
    write_atomically(command.save, to_text(partition));
  }
  fmt::print("{}", command.json ? plan_json(network, plan, options) + "\n" : plan_table(network, plan, partition, options));
}

}  // namespace engine
