#include <algorithm>
#include <fmt/format.h>

#include "engine/cli/commands.h"
#include "engine/cli/messages.h"
#include "engine/comm/agreement.h"
#include "engine/session/model_setup.h"
#include "engine/session/planning.h"
#include "engine/train/verifying/equality.h"

namespace tessera::engine {

namespace {

void print_lines(const EqualityReport& report) {
  constexpr std::size_t kMostLines = 12;
  std::vector<EqualityLine> lines = report.lines;
  std::stable_sort(lines.begin(), lines.end(), [](const EqualityLine& a, const EqualityLine& b) {
    if (a.within_bounds != b.within_bounds) {
      return b.within_bounds;
    }
    return a.double_difference > b.double_difference;
  });
  fmt::print("largest differences, relative to the largest element of the tensor\n");
  fmt::print(
      "  {:<34} {:>18} {:>16} {:>16}\n", "", "double precision", "single: error", "single: error");
  fmt::print(
      "  {:<34} {:>18} {:>16} {:>16}\n", "tensor", "from one tile", "of partition", "of one tile");
  for (std::size_t i = 0; i < std::min(lines.size(), kMostLines); ++i) {
    fmt::print("  {:<34} {:>18.1e} {:>16.1e} {:>16.1e}{}\n",
               lines[i].tensor,
               lines[i].double_difference,
               lines[i].single_error,
               lines[i].one_tile_single_error,
               lines[i].within_bounds ? "" : "  BEYOND BOUNDS");
  }
  if (lines.size() > kMostLines) {
    fmt::print("  ... and {} more tensors, none with a larger difference\n",
               lines.size() - kMostLines);
  }
}

}  // namespace

bool run_check(const CheckCommand& command, const Communicator& communicator) {
  const SessionObserver& messages = printed_messages();
  const partitioner::ModelFile model = load_model(command.model, communicator, messages);
  const partitioner::Network network = agreed(
      communicator, [&] { return frozen(resized(model.network, command.size), command.freeze); });
  const partitioner::Partition partition =
      agreed_partition(network,
                       command.partition,
                       {.model = command.model, .batch = command.batch},
                       communicator,
                       messages);
  expect_exact_gradients(partition, "check");
  warn_of_idle_ranks(partition, communicator, messages);
  const partitioner::Plan plan = make_plan(network, partition, command.batch);
  const std::vector<std::string> violations = check(network, plan);
  const EqualityReport report = check_equality(
      {network, partition, command.batch, command.seed, model.training.norm}, communicator);
  const bool passed = communicator.share(violations.empty() && report.within_bounds);
  if (communicator.rank() != 0) {
    return passed;
  }
  fmt::print(
      "{}: {} ranks, {} groups, batch {}, against one tile, random signed weights and pictures\n",
      command.model,
      communicator.size(),
      partition.groups.size(),
      command.batch);
  fmt::print("plan: {}\n", violations.empty() ? "all invariants hold" : violations.front());
  print_lines(report);
  fmt::print("forward pass in single precision: {} of {} cells differ bitwise from one tile{}\n",
             report.different_bits,
             report.cells,
             report.bits_must_agree
                 ? ""
                 : " (batch normalisation and Winograd's kernels may round differently)");
  fmt::print(
      "flipped relative to one tile: signs {}, argmax {} (one tile relative to double precision: "
      "{} and {})\n",
      report.flipped_signs,
      report.flipped_argmax,
      report.single_flipped_signs,
      report.single_flipped_argmax);
  if (!assigned_heads(network).empty()) {
    fmt::print(
        "cells with another object than on one tile: {} (one tile relative to double "
        "precision: {})\n",
        report.other_objects,
        report.single_other_objects);
  }
  fmt::print("bounds: {:.0e} in double; in single {:g} times the error of one tile, or {:.0e}\n",
             kDoubleBound,
             kSingleErrorRatio,
             kSingleFloor);
  fmt::print("{}\n", passed ? "equal" : "NOT EQUAL: beyond the bounds");
  return passed;
}

}  // namespace tessera::engine
