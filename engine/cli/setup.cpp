#include "engine/cli/setup.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <fmt/format.h>
#include <set>
#include <stdexcept>
#include <unistd.h>

#include "engine/cli/class_outputs.h"
#include "engine/comm/agreement.h"
#include "engine/comm/rank_equality.h"
#include "engine/layers/workspace.h"
#include "engine/system/system_memory.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/quantities.h"
#include "partitioner/base/spelling.h"
#include "partitioner/cost/cluster_profile.h"
#include "partitioner/plan/plan_size.h"

namespace tessera::engine {

partitioner::ModelFile load_model(const std::string& path, const Communicator& communicator) {
  auto model = agreed(communicator, [&] { return partitioner::read_model(path); });
  expect_same(model.text, path, communicator);
  for (const std::string& warning : model.warnings) {
    warn(warning, communicator);
  }
  return model;
}

partitioner::Network resized(const partitioner::Network& network, const std::string& size) {
  if (size.empty()) {
    return network;
  }
  const auto [rows, cols] = partitioner::parse_grid(size, "--size", partitioner::kPixels);
  partitioner::Network result;
  result.image = {network.image.channels, rows, cols};
  for (const partitioner::LayerSpec& layer : network.layers) {
    try {
      add_layer(result, layer.operation, layer.inputs, layer.line);
    } catch (const std::invalid_argument& error) {
      throw InputError(fmt::format("--size {}: layer {} ({}): {}",
                                   size,
                                   result.size(),
                                   kind_name(layer.operation),
                                   error.what()));
    }
  }
  freeze(result, last_frozen(network));
  return result;
}

namespace {

// What may have been meant by a word: the layers of a kind.
std::string layers_like(const partitioner::Network& network, const std::string& text) {
  std::vector<std::string_view> kinds;
  for (const partitioner::LayerSpec& layer : network.layers) {
    kinds.emplace_back(kind_name(layer.operation));
  }
  const std::string_view kind = nearest_word(text, kinds);
  std::string found;
  for (int layer = 0; layer < network.size() && !kind.empty(); ++layer) {
    if (kind == kind_name(network.layer(layer).operation)) {
      found += fmt::format("{}{}", found.empty() ? "" : ", ", layer);
    }
  }
  return found.empty() ? "" : fmt::format(" ({}: {})", kind, found);
}

int parse_layer(const partitioner::Network& network, const std::string& text) {
  constexpr std::string_view kAsInFiles = "layers.";  // names of tensors begin so
  const std::size_t start = text.starts_with(kAsInFiles) ? kAsInFiles.size() : 0;
  const char* const end = text.data() + text.size();
  int layer = 0;
  const auto [stop, error] = std::from_chars(text.data() + start, end, layer);
  if (error != std::errc{} || stop != end || layer < 0 || layer >= network.size()) {
    throw InputError("--freeze",
                     0,
                     fmt::format("\"{}\" is not a layer: give the number of the last layer to "
                                 "freeze, from 0 to {}{}, or none",
                                 text,
                                 network.size() - 1,
                                 layers_like(network, text)));
  }
  return layer;
}

}  // namespace

partitioner::Network frozen(partitioner::Network network, const std::string& layer) {
  if (layer.empty()) {
    return network;
  }
  try {
    freeze(network, layer == "none" ? -1 : parse_layer(network, layer));
  } catch (const std::invalid_argument& error) {
    throw InputError(fmt::format("--freeze {}: {}", layer, error.what()));
  }
  return network;
}

int parse_reader(const std::string& text, int ranks) {
  if (text.empty() || text == "every") {
    return partitioner::kEveryRank;
  }
  int reader = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), reader);
  if (error != std::errc{} || end != text.data() + text.size() || reader < 0 || reader >= ranks) {
    throw InputError(
        "--reader",
        0,
        fmt::format("\"{}\" is not a rank: give one from 0 to {}, or \"every\"", text, ranks - 1));
  }
  return reader;
}

namespace {

// Rows and columns of the squarest grid of `ranks` tiles, no more rows than columns.
std::pair<Index, Index> squarest_grid(int ranks) {
  Index rows = 1;
  for (Index candidate = 1; candidate * candidate <= ranks; ++candidate) {
    rows = ranks % candidate == 0 ? candidate : rows;
  }
  return {rows, ranks / rows};
}

void expect_ranks_of_grid(const partitioner::Shorthand& shorthand) {
  const Index tiles = shorthand.grid_rows * shorthand.grid_cols;
  if (tiles > shorthand.ranks) {
    throw InputError("--grid",
                     0,
                     fmt::format("{}x{} needs {} ranks, there are {}: start {} with mpiexec.mpich "
                                 "-n {}, or give a smaller grid",
                                 shorthand.grid_rows,
                                 shorthand.grid_cols,
                                 tiles,
                                 shorthand.ranks,
                                 tiles,
                                 tiles));
  }
}

}  // namespace

void limit_workspace(const partitioner::Network& network,
                     const PartitionChoice& choice,
                     Index batch,
                     partitioner::Partition& partition) {
  if (choice.workspace_mib > 0) {
    partition.kernels =
        kernels_within(network, make_plan(network, partition, batch), choice.workspace_mib << 20U);
  }
}

void expect_even_replicas(int replicas, int ranks, Index batch) {
  constexpr const char* kOption = "--replicas";
  if (ranks % replicas != 0) {
    const int fewer = ranks / replicas * replicas;
    throw InputError(
        kOption,
        0,
        fmt::format("{} cannot be divided into {} replicas of equal size: start {} with "
                    "mpiexec.mpich -n {}",
                    counted(ranks, "rank"),
                    replicas,
                    fewer == 0 ? std::to_string(replicas)
                               : fmt::format("{} or {}", fewer, fewer + replicas),
                    std::max(fewer, replicas)));
  }
  if (batch % replicas != 0) {
    const Index fewer = batch / replicas * replicas;
    throw InputError(kOption,
                     0,
                     fmt::format("{} images per pass cannot be divided among {} replicas: give a "
                                 "multiple of {} (--batch), such as {}",
                                 batch,
                                 replicas,
                                 replicas,
                                 fewer + replicas));
  }
}

namespace {

void set_compression(const PartitionChoice& choice, partitioner::Partition& partition) {
  if (const auto compression = partitioner::compression_named(choice.gradient_precision)) {
    partition.gradient_reduction.compression = *compression;
  }
}

partitioner::Partition partition_from_file(const partitioner::Network& network,
                                           const PartitionChoice& choice,
                                           int ranks,
                                           Index batch) {
  partitioner::Partition partition = partitioner::read_partition(choice.file);
  validate(partition, network, batch, choice.file);
  if (partition.ranks > ranks) {
    throw InputError(
        choice.file,
        0,
        fmt::format(
            "the partition is for {} ranks, there are {}: start {} with mpiexec.mpich -n {}",
            partition.ranks,
            ranks,
            partition.ranks,
            partition.ranks));
  }
  if (partition.replicas.count > 1 && partition.ranks != ranks) {
    throw InputError(choice.file,
                     0,
                     fmt::format("the partition is for {} replicas on {} ranks, there are {}",
                                 partition.replicas.count,
                                 partition.ranks,
                                 ranks));
  }
  partition.ranks = ranks;  // more than it asks for are idle
  if (!choice.reader.empty()) {
    partition.reader = parse_reader(choice.reader, ranks);
  }
  if (const auto rule = partitioner::kernel_rule_named(choice.kernels)) {
    partition.kernels = choose_kernels(network, *rule);
  }
  set_compression(choice, partition);
  validate(partition, network, batch, choice.file);
  limit_workspace(network, choice, batch, partition);
  return partition;
}

partitioner::Partition chosen_replicas(const partitioner::Network& network,
                                       const PartitionChoice& choice,
                                       const partitioner::Replicas& replicas,
                                       int ranks,
                                       Index batch) {
  expect_even_replicas(replicas.count, ranks, batch);
  PartitionChoice of_one = choice;
  of_one.replicas = 0;
  of_one.sync.clear();
  const partitioner::Partition one =
      choose_partition(network, of_one, ranks / replicas.count, batch / replicas.count);
  if (one.replicas.count > 1) {
    throw InputError(
        choice.file, 0, "the partition has replicas itself: leave out --replicas and --sync");
  }
  partitioner::Partition all = replicated(one, replicas, batch / replicas.count);
  validate(all, network, batch, "--replicas");
  return all;
}

}  // namespace

partitioner::Replicas parse_replicas(const PartitionChoice& choice) {
  partitioner::Replicas replicas;
  if (!choice.sync.empty()) {
    replicas.sync = partitioner::parse_synchronisation(choice.sync);
  }
  if (choice.replicas == 0 && replicas.sync.mode != partitioner::SyncMode::EveryStep) {
    throw InputError(
        "--sync", 0, fmt::format("{} ties replicas: say how many with --replicas", choice.sync));
  }
  replicas.count = std::max(choice.replicas, 1);
  return replicas;
}

partitioner::Partition choose_partition(const partitioner::Network& network,
                                        const PartitionChoice& choice,
                                        int ranks,
                                        Index batch) {
  expect_plannable(network, ranks, batch);
  if (choice.memory_limit_mib > 0 || !choice.objective.empty()) {
    throw InputError("--memory-limit and --objective guide a search: they need --partition auto");
  }
  if (const partitioner::Replicas replicas = parse_replicas(choice); replicas.count > 1) {
    return chosen_replicas(network, choice, replicas, ranks, batch);
  }
  if (!choice.file.empty()) {
    return partition_from_file(network, choice, ranks, batch);
  }
  partitioner::Shorthand shorthand;
  shorthand.ranks = ranks;
  if (!choice.grid.empty()) {
    std::tie(shorthand.grid_rows, shorthand.grid_cols) =
        partitioner::parse_grid(choice.grid, "--grid");
    expect_ranks_of_grid(shorthand);
  } else {
    std::tie(shorthand.grid_rows, shorthand.grid_cols) = squarest_grid(ranks);
  }
  if (!choice.groups.empty()) {
    shorthand.groups = partitioner::parse_groups(choice.groups, "--groups");
  }
  shorthand.recompute_all = choice.recompute == "all";
  if (!choice.recompute.empty() && !shorthand.recompute_all) {
    shorthand.recompute = partitioner::parse_groups(choice.recompute, "--recompute");
  }
  shorthand.data_parallel_from = choice.data_parallel_from;
  shorthand.filter_parallel_from = choice.filter_parallel_from;
  shorthand.reader = parse_reader(choice.reader, ranks);
  shorthand.kernels =
      partitioner::kernel_rule_named(choice.kernels).value_or(choice.default_kernels);
  partitioner::Partition partition = make_partition(network, shorthand);
  validate(partition, network, batch, "--grid");
  set_compression(choice, partition);
  limit_workspace(network, choice, batch, partition);
  return partition;
}

void expect_exact_gradients(const partitioner::Partition& partition, const std::string& command) {
  const partitioner::Compression& compression = partition.gradient_reduction.compression;
  if (compression != partitioner::Compression::Exact) {
    throw AgreedError(
        fmt::format("`{}` compares exact numbers, but the partition reduces gradients {}: remove "
                    "`precision = \"{}\"` from its [sums]",
                    command,
                    compression == partitioner::Compression::Half ? "in half precision"
                                                                  : "in compressed messages",
                    to_text(compression)));
  }
  if (partition.replicas.independent()) {
    throw AgreedError(
        fmt::format("`{}` compares exact numbers, but the partition ties replicas by {}: remove "
                    "its [replicas]",
                    command,
                    to_text(partition.replicas.sync)));
  }
}

BatchNormMode parse_batch_norm(const std::string& text) {
  if (text == "frozen") {
    return BatchNormMode::Frozen;
  }
  return text == "tile" ? BatchNormMode::PerTile : BatchNormMode::Sync;
}

void warn(const std::string& text) {
  const std::string line = "tessera: warning: " + printable(text) + "\n";
  (void)std::fwrite(line.data(), 1, line.size(), stderr);
}

void warn(const std::string& text, const Communicator& communicator) {
  if (communicator.rank() == 0) {
    warn(text);
  }
}

RenderingRules rules_for_weights(const std::string& weights,
                                 const std::optional<Preparation>& stored,
                                 const partitioner::ModelFile& model,
                                 const PixelConvention& given,
                                 const Communicator& communicator) {
  RenderingRules rules = rendering_rules(model, convention_in_effect(given, stored));
  if (stored) {
    if (const auto difference = pixel_difference(*stored, preparation_of(rules, {}))) {
      warn(fmt::format("{} {}", weights, *difference), communicator);
    }
  }
  return rules;
}

Dataset open_labelled(const std::string& path,
                      Split split,
                      const partitioner::Network& network,
                      const std::string& model) {
  Dataset dataset = list_dataset(path, split, network.image.channels);
  expect_outputs(network, model, dataset, path);
  return dataset;
}

void expect_outputs(const partitioner::Network& network,
                    const std::string& model,
                    const Dataset& dataset,
                    const std::string& path) {
  // Where a class is wrong, their number may be.
  const auto problems = dataset.problems();
  if (std::none_of(problems.begin(), problems.end(), [](const DataProblem& each) {
        return is_error(each.fault) && !is_of_picture(each.fault);
      })) {
    expect_output_for_each_class(network, model, dataset, path);
  }
}

std::vector<Index> workspace_bytes_of_ranks(const partitioner::Network& network,
                                            const partitioner::Plan& plan,
                                            bool training) {
  std::vector<Index> bytes;
  bytes.reserve(static_cast<std::size_t>(plan.ranks));
  for (int rank = 0; rank < plan.ranks; ++rank) {
    bytes.push_back(workspace_elements(network, plan, rank, {.training = training}) *
                    partitioner::MemoryOptions{}.scalar_bytes);
  }
  return bytes;
}

partitioner::ReportOptions report_options(const std::string& model,
                                          const partitioner::Network& network,
                                          const partitioner::Plan& plan,
                                          bool adam) {
  partitioner::ReportOptions options;
  options.model = model;
  options.memory.adam = adam;
  options.memory.picture_batches = 1;
  options.memory.program_bytes = partitioner::kUsualProgramBytes;
  options.workspace_bytes = workspace_bytes_of_ranks(network, plan, true);
  return options;
}

namespace {

// What the ranks of one machine need and have, as one of them sees it.
struct MachineShare {
  std::array<char, 256> machine{};
  Index needed = 0;
  Index resident = 0;
};

// Sums over the ranks on this machine, itself included.
MachineShare sum_on_this_machine(Index needed, const Communicator& communicator) {
  MachineShare mine;
  gethostname(mine.machine.data(), mine.machine.size() - 1);
  mine.needed = needed;
  mine.resident = resident_bytes();
  MachineShare sum;
  for (const MachineShare& theirs : communicator.of_ranks(mine)) {
    if (theirs.machine == mine.machine) {
      sum.needed += theirs.needed;
      sum.resident += theirs.resident;
    }
  }
  return sum;
}

}  // namespace

void expect_memory(const partitioner::Network& network,
                   const partitioner::Plan& plan,
                   const partitioner::ReportOptions& options,
                   const Communicator& communicator) {
  const auto rank = static_cast<std::size_t>(communicator.rank());
  const Index needed = planned_memory_of_ranks(network, plan, options)[rank].total();
  const MachineShare all = sum_on_this_machine(needed, communicator);
  const Index machine = static_cast<Index>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
  // Ranks of one machine share their control group, and what they have already counts as theirs.
  const auto left = memory_left_by_groups();
  std::optional<std::string> there;
  if (left && all.needed > *left + all.resident) {
    there = fmt::format("its control group leaves {}", readable_bytes(*left + all.resident));
  } else if (machine > 0 && all.needed > machine) {
    there = fmt::format("its machine has {}", readable_bytes(machine));
  }
  std::optional<std::string> problem;
  if (there) {
    const std::string others =
        all.needed > needed ? fmt::format(" ({} with the others there)", readable_bytes(all.needed))
                            : "";
    problem = fmt::format(
        "{}: training needs {} on rank {}{}, {}: use fewer images at a time (--batch, "
        "--subdivisions), or cut it into more tiles",
        options.model,
        readable_bytes(needed),
        rank,
        others,
        *there);
  }
  throw_agreed(communicator, problem);
}

void expect_loss(const partitioner::Network& network, const std::string& model) {
  if (losses(network).empty()) {
    throw InputError(
        model, 0, "the network has no loss to train with: end it with [softmax] or [cost]");
  }
}

void warn_of_idle_ranks(const partitioner::Partition& partition, const Communicator& communicator) {
  std::set<int> busy;
  for (const partitioner::Group& group : partition.groups) {
    busy.insert(group.ranks.begin(), group.ranks.end());
  }
  const int idle = communicator.size() - static_cast<int>(busy.size());
  if (idle > 0) {
    warn(fmt::format("{} of {} ranks have no tile and stay idle", idle, communicator.size()),
         communicator);
  }
}

}  // namespace tessera::engine
