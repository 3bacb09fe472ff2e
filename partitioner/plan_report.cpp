#include "partitioner/plan_report.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <numeric>
#include <utility>

#include "partitioner/plan_totals.h"
#include "partitioner/text_table.h"

namespace partitioner {

namespace {

constexpr int kMostRowsOfRanks = 8;
constexpr std::size_t kKindsWidth = 24;
constexpr std::size_t kCutsWidth = 84;

std::string readable(double value, double step, const std::array<const char*, 5>& units) {
  std::size_t unit = 0;
  while (value >= step && unit + 1 < units.size()) {
    value /= step;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f}{}", value, units[0])
                   : fmt::format("{:.1f}{}", value, units[unit]);
}

std::string readable_bytes(Index bytes) {
  return readable(static_cast<double>(bytes), 1024, {" B", " KiB", " MiB", " GiB", " TiB"});
}

std::string readable_count(Index count) {
  return readable(static_cast<double>(count), 1000, {"", " k", " M", " G", " T"});
}

std::string redundant_share(const Work& work) {
  return work.redundant == 0 ? "0 %"
                             : fmt::format("{:.1f} %",
                                           100.0 * static_cast<double>(work.redundant) /
                                               static_cast<double>(work.multiply_adds));
}

std::string mebibytes(Index bytes) {
  return fmt::format("{:.1f}", static_cast<double>(bytes) / (1024.0 * 1024.0));
}

std::string shape_text(const MapShape& shape) {
  return fmt::format("{}x{}x{}", shape.channels, shape.rows, shape.cols);
}

std::string layers_text(int first, int last) {
  return first == last ? std::to_string(first) : fmt::format("{}-{}", first, last);
}

std::string cut_text(const Group& group) {
  std::vector<std::string> cuts;
  if (group.images.parts > 1) {
    cuts.push_back(fmt::format("images in {}", group.images.parts));
  }
  if (group.channels.parts > 1) {
    cuts.push_back(fmt::format("channels in {}", group.channels.parts));
  }
  if (group.rows.parts * group.cols.parts > 1) {
    cuts.push_back(fmt::format("{}x{} tiles", group.rows.parts, group.cols.parts));
  }
  return cuts.empty() ? "one tile" : fmt::format("{}", fmt::join(cuts, ", "));
}

// "layers 0-15 as 2x2 tiles", "16-19 as images in 4", ...: where one cut is handed over to another.
std::vector<std::string> hand_overs(const Partition& partition) {
  std::vector<std::string> runs;
  const std::vector<Group>& groups = partition.groups;
  for (std::size_t i = 0; i < groups.size();) {
    std::size_t next = i + 1;
    while (next < groups.size() && cut_text(groups[next]) == cut_text(groups[i])) {
      ++next;
    }
    runs.push_back(fmt::format("{}{} as {}",
                               i == 0 ? "layers " : "",
                               layers_text(groups[i].first, groups[next - 1].last),
                               cut_text(groups[i])));
    i = next;
  }
  return runs;
}

// "convolutional x2, maxpool"
std::string kinds_text(const Network& network, const Group& group) {
  std::vector<std::pair<std::string, int>> runs;
  for (int layer = group.first; layer <= group.last; ++layer) {
    const std::string kind = kind_name(network.layer(layer).operation);
    if (runs.empty() || runs.back().first != kind) {
      runs.emplace_back(kind, 0);
    }
    ++runs.back().second;
  }
  std::vector<std::string> words;
  for (const auto& [kind, count] : runs) {
    words.push_back(count == 1 ? kind : fmt::format("{} x{}", kind, count));
  }
  return wrapped(words, kKindsWidth);
}

struct Row {
  int rank = 0;
  std::string label;
};

// All ranks, or where there are many those with the least, the median and the most.
std::vector<Row> rows_of_ranks(const std::vector<Index>& weights) {
  std::vector<int> order(weights.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<Row> rows;
  if (order.size() <= kMostRowsOfRanks) {
    for (const int rank : order) {
      rows.push_back({rank, std::to_string(rank)});
    }
    return rows;
  }
  std::stable_sort(order.begin(), order.end(), [&weights](int a, int b) {
    return weights[static_cast<std::size_t>(a)] < weights[static_cast<std::size_t>(b)];
  });
  const int median = order[order.size() / 2];
  for (const auto& [rank, name] : {std::pair(order.front(), "least"),
                                   std::pair(median, "median"),
                                   std::pair(order.back(), "most")}) {
    rows.push_back({rank, fmt::format("{} {}", name, rank)});
  }
  return rows;
}

struct Dimension {
  const char* name;
  Range Region::*range;
};

constexpr Dimension kDimensions[] = {{"images", &Region::images},
                                     {"channels", &Region::channels},
                                     {"rows", &Region::rows},
                                     {"cols", &Region::cols}};

// Regions of one map on all ranks: a column for each dimension in which some rank has less than the
// whole.
class RegionColumns {
 public:
  RegionColumns(const char* role, std::vector<Region> regions, const Region& whole)
      : role_(role), regions_(std::move(regions)) {
    for (const Dimension& dimension : kDimensions) {
      bool cut = false;
      for (const Region& region : regions_) {
        cut = cut || (!region.empty() && region.*dimension.range != whole.*dimension.range);
      }
      if (cut) {
        dimensions_.push_back(dimension);
      }
    }
  }

  void add_titles(std::vector<Column>& columns) const {
    for (const Dimension& dimension : dimensions_) {
      columns.push_back({fmt::format("{}\n{}", role_, dimension.name)});
    }
  }

  void add_cells(int rank, std::vector<std::string>& cells) const {
    const Region& region = regions_[static_cast<std::size_t>(rank)];
    for (const Dimension& dimension : dimensions_) {
      const Range& range = region.*dimension.range;
      cells.push_back(region.empty() ? "-" : fmt::format("{}:{}", range.begin, range.end));
    }
  }

 private:
  const char* role_;
  std::vector<Region> regions_;
  std::vector<Dimension> dimensions_;
};

// The parts of plan_table(), from what they have in common.
class Report {
 public:
  Report(const Network& network,
         const Plan& plan,
         const Partition& partition,
         const ReportOptions& options)
      : network_(network),
        plan_(plan),
        partition_(partition),
        options_(options),
        totals_(plan_totals(network, plan, options.memory.scalar_bytes)),
        memory_(planned_memory_of_ranks(network, plan, options)) {}

  [[nodiscard]] std::string table() const {
    std::string text = head() + '\n' + groups();
    if (plan_.ranks > 1) {
      text +=
          "\nWhat each rank owns of a group's output and computes of its first layer's, begin:end. "
          "A dimension\n"
          "that nobody has only a part of is left out. Bytes are received, forward and backward.\n";
      for (std::size_t group = 0; group < partition_.groups.size(); ++group) {
        text += '\n' + ranks_of_group(group);
      }
      text += "\nParameters of a step over the wire, and normalisation's sums of a pass\n" + wire();
    }
    return text + "\nPlanned memory, MiB\n" + memory();
  }

  [[nodiscard]] std::string summary() const {
    const std::string ranks = fmt::format("{} rank{}", plan_.ranks, plan_.ranks == 1 ? "" : "s");
    const std::string memory = fmt::format("at most {} a rank", readable_bytes(most_memory()));
    if (plan_.ranks == 1) {
      return fmt::format("{}, batch {}, {} multiply-adds forward, {}",
                         ranks,
                         plan_.batch,
                         readable_count(totals_.sum.work.multiply_adds),
                         memory);
    }
    return fmt::format(
        "{}, {}; {} multiply-adds forward ({} redundant), {} of maps sent forward and {} back, {}",
        ranks,
        short_hand_overs(),
        readable_count(totals_.sum.work.multiply_adds),
        redundant_share(totals_.sum.work),
        readable_bytes(totals_.sum.forward_in.bytes),
        readable_bytes(totals_.sum.backward_in.bytes),
        memory);
  }

 private:
  [[nodiscard]] Index most_memory() const {
    Index most = 0;
    for (const MemoryUse& use : memory_) {
      most = std::max(most, use.total());
    }
    return most;
  }

  [[nodiscard]] std::string short_hand_overs() const {
    constexpr std::size_t kMostRuns = 3;
    const std::vector<std::string> runs = hand_overs(partition_);
    return runs.size() <= kMostRuns ? fmt::format("{}", fmt::join(runs, ", "))
                                    : fmt::format("{} changes of the cut", runs.size() - 1);
  }

  [[nodiscard]] std::string head() const {
    Index gradient_bytes = 0;
    for (const Traffic& traffic : totals_.gradient_sum_in) {
      gradient_bytes += traffic.bytes;
    }
    TextTable lines({{"model", Align::Left}, {options_.model, Align::Left}});
    lines.add_row({"input",
                   fmt::format("{}, {} images a pass, read by {}",
                               shape_text(network_.image),
                               plan_.batch,
                               plan_.reader == kEveryRank ? "every rank for itself"
                                                          : fmt::format("rank {}", plan_.reader))});
    lines.add_row({"layers",
                   fmt::format("{}, groups {}, ranks {}",
                               network_.size(),
                               partition_.groups.size(),
                               plan_.ranks)});
    lines.add_row({"cut", wrapped(hand_overs(partition_), kCutsWidth)});
    lines.add_row(
        {"forward pass",
         fmt::format("{} multiply-adds, {} of them redundant: also computed by another rank",
                     readable_count(totals_.sum.work.multiply_adds),
                     redundant_share(totals_.sum.work))});
    lines.add_row({"maps sent",
                   fmt::format("{} forward in {} messages, {} backward in {}",
                               readable_bytes(totals_.sum.forward_in.bytes),
                               totals_.sum.forward_in.messages,
                               readable_bytes(totals_.sum.backward_in.bytes),
                               totals_.sum.backward_in.messages)});
    lines.add_row({"gradient sum",
                   fmt::format("{} a step, gradients to their owners and values back",
                               readable_bytes(gradient_bytes))});
    return lines.text();
  }

  [[nodiscard]] std::string groups() const {
    TextTable table({{"\ngroup"},
                     {"\nlayers"},
                     {"\nkinds", Align::Left},
                     {"\ncut of the output", Align::Left},
                     {"messages\nfwd + bwd"},
                     {"\nforward"},
                     {"\nbackward"},
                     {"multiply-\nadds"},
                     {"redun-\ndant"}});
    for (std::size_t i = 0; i < partition_.groups.size(); ++i) {
      const Group& group = partition_.groups[i];
      const Totals& sum = totals_.group_sums[i];
      table.add_row({std::to_string(i),
                     layers_text(group.first, group.last),
                     kinds_text(network_, group),
                     cut_text(group),
                     fmt::format("{} + {}", sum.forward_in.messages, sum.backward_in.messages),
                     readable_bytes(sum.forward_in.bytes),
                     readable_bytes(sum.backward_in.bytes),
                     readable_count(sum.work.multiply_adds),
                     redundant_share(sum.work)});
    }
    return table.text();
  }

  [[nodiscard]] RegionColumns regions(const char* role, int layer, Region Tile::*region) const {
    std::vector<Region> of_ranks;
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      of_ranks.push_back(plan_.tile(layer, rank).*region);
    }
    return {role, std::move(of_ranks), whole_map(network_, layer, plan_.batch)};
  }

  [[nodiscard]] std::string ranks_of_group(std::size_t index) const {
    const Group& group = partition_.groups[index];
    const RegionColumns owned = regions("owned", group.last, &Tile::owned);
    const RegionColumns computed = regions("computed", group.first, &Tile::computed);
    std::vector<Column> columns = {{"\nrank"}};
    owned.add_titles(columns);
    computed.add_titles(columns);
    for (const char* title :
         {"messages\nin", "\nforward", "\nbackward", "multiply-\nadds", "redun-\ndant"}) {
      columns.push_back({title});
    }
    TextTable table(std::move(columns));
    const std::vector<Totals>& totals = totals_.by_group[index];
    std::vector<Index> work;
    for (const Totals& rank : totals) {
      work.push_back(rank.work.multiply_adds);
    }
    for (const Row& row : rows_of_ranks(work)) {
      const Totals& of = totals[static_cast<std::size_t>(row.rank)];
      std::vector<std::string> cells = {row.label};
      owned.add_cells(row.rank, cells);
      computed.add_cells(row.rank, cells);
      cells.push_back(fmt::format("{} + {}", of.forward_in.messages, of.backward_in.messages));
      cells.push_back(readable_bytes(of.forward_in.bytes));
      cells.push_back(readable_bytes(of.backward_in.bytes));
      cells.push_back(readable_count(of.work.multiply_adds));
      cells.push_back(redundant_share(of.work));
      table.add_row(std::move(cells));
    }
    return fmt::format("group {}, layers {}: owned of {} {}, computed of {} {}\n",
                       index,
                       layers_text(group.first, group.last),
                       group.last,
                       shape_text(network_.shape(group.last)),
                       group.first,
                       shape_text(network_.shape(group.first))) +
           table.text();
  }

  [[nodiscard]] std::string wire() const {
    TextTable table({{"rank"}, {"gradient sum sent"}, {"received"}, {"normalisation received"}});
    std::vector<Index> received;
    for (const Traffic& traffic : totals_.gradient_sum_in) {
      received.push_back(traffic.bytes);
    }
    for (const Row& row : rows_of_ranks(received)) {
      const auto rank = static_cast<std::size_t>(row.rank);
      table.add_row({row.label,
                     readable_bytes(totals_.gradient_sum_out[rank].bytes),
                     readable_bytes(totals_.gradient_sum_in[rank].bytes),
                     readable_bytes(totals_.channel_sum_in_bytes[rank])});
    }
    return table.text();
  }

  [[nodiscard]] std::string memory() const {
    TextTable table({{"rank"},
                     {"weights"},
                     {"gradients"},
                     {"optimizer"},
                     {"activations"},
                     {"workspace"},
                     {"messages"},
                     {"total"}});
    std::vector<Index> totals;
    for (const MemoryUse& use : memory_) {
      totals.push_back(use.total());
    }
    for (const Row& row : rows_of_ranks(totals)) {
      const MemoryUse& use = memory_[static_cast<std::size_t>(row.rank)];
      std::vector<std::string> cells = {row.label};
      for (const Index bytes : {use.weights,
                                use.gradients,
                                use.optimizer,
                                use.activations,
                                use.workspace,
                                use.messages,
                                use.total()}) {
        cells.push_back(mebibytes(bytes));
      }
      table.add_row(std::move(cells));
    }
    return table.text();
  }

  const Network& network_;
  const Plan& plan_;
  const Partition& partition_;
  const ReportOptions& options_;
  PlanTotals totals_;
  std::vector<MemoryUse> memory_;
};

}  // namespace

std::vector<MemoryUse> planned_memory_of_ranks(const Network& network,
                                               const Plan& plan,
                                               const ReportOptions& options) {
  std::vector<MemoryUse> ranks;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    MemoryOptions memory = options.memory;
    if (!options.workspace_bytes.empty()) {
      memory.workspace_bytes = options.workspace_bytes[static_cast<std::size_t>(rank)];
    }
    ranks.push_back(planned_memory(network, plan, rank, memory));
  }
  return ranks;
}

std::string plan_table(const Network& network,
                       const Plan& plan,
                       const Partition& partition,
                       const ReportOptions& options) {
  return Report(network, plan, partition, options).table();
}

std::string plan_summary(const Network& network,
                         const Plan& plan,
                         const Partition& partition,
                         const ReportOptions& options) {
  return Report(network, plan, partition, options).summary();
}

}  // namespace partitioner
