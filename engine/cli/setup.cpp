#include "engine/cli/setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "engine/comm/agreement.h"

namespace engine {

using partitioner::InputError;

partitioner::ModelFile load_model(const std::string& path, const Communicator& communicator) {
  auto model = agreed(communicator, [&] { return partitioner::read_model(path); });
  if (communicator.rank() == 0) {
    for (const std::string& warning : model.warnings) {
      fmt::print(stderr, "tessera: warning: {}\n", warning);
    }
  }
  return model;
}

partitioner::Network resized(const partitioner::Network& network, const std::string& size) {
  if (size.empty()) {
    return network;
  }
  const auto [rows, cols] = partitioner::parse_grid(size, "--size");
  partitioner::Network result;
  result.image = {network.image.channels, rows, cols};
  for (const partitioner::LayerSpec& layer : network.layers) {
    try {
      add_layer(result, layer.operation, layer.inputs, layer.line);
    } catch (const std::invalid_argument& error) {
      throw InputError(fmt::format("--size {}: layer {} ({}): {}", size, result.size(), kind_name(layer.operation),
                                   error.what()));
    }
  }
  return result;
}

namespace {

int parse_reader(const std::string& text, int ranks) {
  if (text == "every") {
    return partitioner::kEveryRank;
  }
  int reader = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), reader);
  if (error != std::errc{} || end != text.data() + text.size() || reader < 0 || reader >= ranks) {
    throw InputError(fmt::format("--reader {}: give 'every' or the number of a rank, 0 to {}", text, ranks - 1));
  }
  return reader;
}

// Rows and columns of the squarest grid of `ranks` tiles, no more rows than columns.
std::pair<Index, Index> squarest_grid(int ranks) {
  Index rows = 1;
  for (Index candidate = 1; candidate * candidate <= ranks; ++candidate) {
    rows = ranks % candidate == 0 ? candidate : rows;
  }
  return {rows, ranks / rows};
}

}  // namespace

partitioner::Partition choose_partition(const partitioner::Network& network,
                                        const PartitionChoice& choice,
                                        int ranks,
                                        Index batch) {
  if (!choice.file.empty()) {
    partitioner::Partition partition = partitioner::read_partition(choice.file);
    validate(partition, network, batch, choice.file);
    if (partition.ranks > ranks) {
      throw InputError(choice.file, 0,
                       fmt::format("the partition is for {} ranks, there are {}: start {} with mpiexec.mpich -n {}",
                                   partition.ranks, ranks, partition.ranks, partition.ranks));
    }
    partition.ranks = ranks;  // more than it asks for are idle
    return partition;
  }
  partitioner::Shorthand shorthand;
  shorthand.ranks = ranks;
  if (!choice.grid.empty()) {
    std::tie(shorthand.grid_rows, shorthand.grid_cols) = partitioner::parse_grid(choice.grid, "--grid");
  } else if (!choice.given()) {
    std::tie(shorthand.grid_rows, shorthand.grid_cols) = squarest_grid(ranks);
  }
  if (!choice.groups.empty()) {
    shorthand.groups = partitioner::parse_groups(choice.groups, "--groups");
  }
  shorthand.data_parallel_from = choice.data_parallel_from;
  shorthand.filter_parallel_from = choice.filter_parallel_from;
  shorthand.reader = parse_reader(choice.reader, ranks);
  partitioner::Partition partition = make_partition(network, shorthand);
  validate(partition, network, batch, "--grid");
  return partition;
}

BatchNormMode parse_batch_norm(const std::string& text) {
  if (text == "frozen") {
    return BatchNormMode::Frozen;
  }
  return text == "tile" ? BatchNormMode::PerTile : BatchNormMode::Sync;
}

void warn_of_idle_ranks(const partitioner::Partition& partition, const Communicator& communicator) {
  std::set<int> busy;
  for (const partitioner::Group& group : partition.groups) {
    busy.insert(group.ranks.begin(), group.ranks.end());
  }
  const int idle = communicator.size() - static_cast<int>(busy.size());
  if (idle > 0 && communicator.rank() == 0) {
    fmt::print(stderr, "tessera: warning: {} of {} ranks have no tile and stay idle\n", idle, communicator.size());
  }
}

}  // namespace engine
