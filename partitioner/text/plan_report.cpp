#include "partitioner/text/plan_report.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "partitioner/base/quantities.h"
#include "partitioner/base/text_table.h"
#include "partitioner/memory/activation_arena.h"
#include "partitioner/plan/plan_totals.h"
#include "partitioner/text/plan_words.h"

namespace tessera::partitioner {

namespace {

constexpr std::size_t kMostRowsOfRanks = 8;
constexpr std::size_t kKindsWidth = 18;
constexpr std::size_t kCutWidth = 14;
constexpr std::size_t kCutsWidth = 84;
constexpr std::size_t kOverviewLines = 2;  // of a list of words
constexpr std::size_t kAllLines = static_cast<std::size_t>(-1);

std::string redundant_share(const Work& work) {
  return share_of(work.redundant, work.multiply_adds);
}

struct RankRow {
  int rank = 0;
  std::string label;
};

// The ranks whose weight is not negative, or where there are many those with the least, the median
// and the most.
std::vector<RankRow> rows_of_ranks(const std::vector<Index>& weights) {
  std::vector<int> order;
  std::vector<RankRow> rows;
  for (int rank = 0; rank < static_cast<int>(weights.size()); ++rank) {
    if (weights[static_cast<std::size_t>(rank)] >= 0) {
      order.push_back(rank);
      rows.push_back({rank, std::to_string(rank)});
    }
  }
  if (order.size() <= kMostRowsOfRanks) {
    return rows;
  }
  std::stable_sort(order.begin(), order.end(), [&weights](int a, int b) {
    return weights[static_cast<std::size_t>(a)] < weights[static_cast<std::size_t>(b)];
  });
  const int median = order[order.size() / 2];
  return {{order.front(), fmt::format("least {}", order.front())},
          {median, fmt::format("median {}", median)},
          {order.back(), fmt::format("most {}", order.back())}};
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

  [[nodiscard]] std::string overview() const { return head(kOverviewLines); }

  [[nodiscard]] std::string table() const {
    std::string text = head(kAllLines) + '\n' + groups();
    if (plan_.ranks > 1) {
      text +=
          "\n"
          "What each rank owns of a group's output and computes of its first layer's, begin:end. "
          "Dimensions\n"
          "that are not cut are left out. Bytes are received, forward and backward.\n";
      for (std::size_t group = 0; group < partition_.groups.size(); ++group) {
        text += '\n' + ranks_of_group(group);
      }
      text +=
          "\n"
          "Parameters sent per step, and batch statistics received per pass\n" +
          wire();
    }
    text += "\nPlanned memory, MiB\n" + memory();
    if (options_.memory.training) {
      text +=
          "\nActivations of a pass, MiB: kept from forward to backward, the rest of their arena, "
          "and what\n"
          "would be kept if each backward pass found its inputs once and nothing were computed "
          "again\n" +
          activations();
    }
    return text;
  }

  [[nodiscard]] std::string summary() const {
    const std::string memory = readable_bytes(most_memory());
    if (plan_.ranks == 1) {
      return fmt::format("1 rank, {} multiply-adds forward, {} of memory{}",
                         readable_count(totals_.sum.work.multiply_adds),
                         memory,
                         frozen());
    }
    return fmt::format(
        "{}, {}: {} of the work redundant, maps {} + {} per pass, gradients {} per step, memory up "
        "to {} per rank{}",
        ranks_text(),
        short_hand_overs(),
        redundant_share(totals_.sum.work),
        readable_bytes(totals_.sum.forward_in.bytes),
        readable_bytes(totals_.sum.backward_in.bytes),
        readable_bytes(gradient_reduction_bytes()),
        memory,
        frozen());
  }

 private:
  [[nodiscard]] std::string ranks_text() const {
    const std::string ranks = counted(plan_.ranks, "rank");
    return plan_.replicas.count == 1
               ? ranks
               : fmt::format("{} in {} replicas", ranks, plan_.replicas.count);
  }

  [[nodiscard]] std::string frozen() const {
    const int last = last_frozen(network_);
    return last < 0 ? "" : fmt::format(", {} frozen", named_layers(0, last));
  }

  [[nodiscard]] Index most_memory() const {
    Index most = 0;
    for (const MemoryUse& use : memory_) {
      most = std::max(most, use.total());
    }
    return most;
  }

  [[nodiscard]] Index gradient_reduction_bytes() const {
    Index bytes = 0;
    for (const Traffic& traffic : totals_.gradient_reduction_in) {
      bytes += traffic.bytes;
    }
    return bytes;
  }

  [[nodiscard]] std::string short_hand_overs() const {
    constexpr std::size_t kMostRuns = 3;
    const std::vector<std::string> runs = hand_overs(partition_);
    return runs.size() <= kMostRuns ? fmt::format("{}", fmt::join(runs, ", "))
                                    : fmt::format("{} changes of the cut", runs.size() - 1);
  }

  // Long lists of words end after `most` lines.
  [[nodiscard]] static std::string list(const std::vector<std::string>& words, std::size_t most) {
    std::string text = wrapped(words, kCutsWidth);
    std::size_t end = 0;
    for (std::size_t line = 0; line < most && end != std::string::npos; ++line) {
      end = text.find('\n', end == 0 ? 0 : end + 1);
    }
    return end == std::string::npos ? text : text.substr(0, end) + " ... (all with --regions)";
  }

  [[nodiscard]] std::string head(std::size_t most_lines) const {
    TextTable lines({{"model", Align::Left}, {options_.model, Align::Left}});
    lines.add_row({"input",
                   fmt::format("{}, {} per pass, read by {}",
                               shape_text(network_.image),
                               counted(plan_.batch, "image"),
                               plan_.reader.is_every_rank()
                                   ? "every rank for itself"
                                   : fmt::format("rank {}", plan_.reader.first_rank()))});
    lines.add_row({"layers",
                   fmt::format("{} in {} on {}",
                               network_.size(),
                               counted(static_cast<Index>(partition_.groups.size()), "group"),
                               ranks_text())});
    if (plan_.replicas.count > 1) {
      lines.add_row({"replicas",
                     fmt::format("{} of {}, synchronised by {}",
                                 plan_.replicas.count,
                                 counted(plan_.ranks / plan_.replicas.count, "rank"),
                                 to_text(plan_.replicas.sync))});
    }
    if (const auto inexact = inexact_words(
            network_, plan_.replicas, plan_.compression_of_decision(), options_.tile_statistics);
        !inexact.empty()) {
      lines.add_row({"not exact", list(inexact, kAllLines)});
    }
    lines.add_row({"cut", list(hand_overs(partition_), most_lines)});
    if (const int last = last_frozen(network_); last >= 0) {
      lines.add_row({"frozen", named_layers(0, last)});
    }
    if (const auto recomputed = recomputed_words(partition_); !recomputed.empty()) {
      lines.add_row({"recomputed", list(recomputed, most_lines)});
    }
    if (const auto kernels = kernel_words(network_, plan_); !kernels.empty()) {
      lines.add_row({"kernels", list(kernels, most_lines)});
    }
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
    const bool replicated = plan_.gradient_reduction.optimizer == OptimizerStates::Replicated;
    if (replicated) {
      lines.add_row({"optimizer", "its state is on all ranks that hold a parameter (replicated)"});
    }
    lines.add_row({"gradient reduction",
                   fmt::format("{} per step, gradients to their owners and {} back",
                               readable_bytes(gradient_reduction_bytes()),
                               replicated ? "their sums" : "parameters")});
    return lines.text();
  }

  [[nodiscard]] std::string groups() const {
    TextTable table({{"\ngroup"},
                     {"\nlayers"},
                     {"\nkinds", Align::Left},
                     {"\ncut", Align::Left},
                     {"messages\nfwd+bwd"},
                     {"\nforward"},
                     {"\nbackward"},
                     {"mult-\nadds"},
                     {"redun-\ndant"}});
    for (std::size_t i = 0; i < partition_.groups.size(); ++i) {
      const Group& group = partition_.groups[i];
      const Totals& sum = totals_.group_totals[i];
      std::vector<std::string> cut = cut_words(group);
      if (group.recompute) {
        cut.emplace_back("recomputed");
      }
      table.add_row({std::to_string(i),
                     layers_text(group.first, group.last),
                     wrapped(kind_words(network_, group), kKindsWidth),
                     wrapped(cut, kCutWidth),
                     fmt::format("{}+{}", sum.forward_in.messages, sum.backward_in.messages),
                     readable_bytes(sum.forward_in.bytes),
                     readable_bytes(sum.backward_in.bytes),
                     readable_count(sum.work.multiply_adds),
                     redundant_share(sum.work)});
    }
    return table.text();
  }

  [[nodiscard]] RegionColumns regions(const char* role, int layer, Region Tile::*region) const {
    std::vector<Region> of_ranks;
    of_ranks.reserve(static_cast<std::size_t>(plan_.ranks));
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      of_ranks.push_back(plan_.tile(layer, rank).*region);
    }
    return {role, std::move(of_ranks), whole_map(network_, layer, plan_.batch)};
  }

  // How much each rank does in a group: multiply-adds, or cells where a group has none; -1 for a
  // rank that has neither a tile nor a message.
  [[nodiscard]] std::vector<Index> weights_in_group(std::size_t index) const {
    const bool multiplies = totals_.group_totals[index].work.multiply_adds > 0;
    std::vector<Index> weights;
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      const Totals& totals = totals_.by_group[index][static_cast<std::size_t>(rank)];
      const Index cells = plan_.tile(partition_.groups[index].first, rank).computed.volume();
      const Index messages = totals.forward_in.messages + totals.forward_out.messages +
                             totals.backward_in.messages + totals.backward_out.messages;
      const bool idle = cells == 0 && messages == 0;
      weights.push_back(idle ? -1 : multiplies ? totals.work.multiply_adds : cells);
    }
    return weights;
  }

  [[nodiscard]] std::string ranks_of_group(std::size_t index) const {
    const Group& group = partition_.groups[index];
    const RegionColumns owned = regions("owned", group.last, &Tile::owned);
    const RegionColumns computed = regions("computed", group.first, &Tile::computed);
    std::vector<Column> columns = {{"\nrank"}};
    owned.add_titles(columns);
    computed.add_titles(columns);
    for (const char* title :
         {"messages\nin", "\nforward", "\nbackward", "mult-\nadds", "redun-\ndant"}) {
      columns.push_back({title});
    }
    TextTable table(std::move(columns));
    const std::vector<Totals>& totals = totals_.by_group[index];
    for (const RankRow& row : rows_of_ranks(weights_in_group(index))) {
      const Totals& of = totals[static_cast<std::size_t>(row.rank)];
      std::vector<std::string> cells = {row.label};
      owned.add_cells(row.rank, cells);
      computed.add_cells(row.rank, cells);
      cells.push_back(fmt::format("{}+{}", of.forward_in.messages, of.backward_in.messages));
      cells.push_back(readable_bytes(of.forward_in.bytes));
      cells.push_back(readable_bytes(of.backward_in.bytes));
      cells.push_back(readable_count(of.work.multiply_adds));
      cells.push_back(redundant_share(of.work));
      table.add_row(std::move(cells));
    }
    std::string title = fmt::format("group {}, {}: ", index, named_layers(group.first, group.last));
    if (group.first == group.last) {
      title += shape_text(network_.shape(group.last));
    } else {
      title += fmt::format("owned of layer {}'s {}, computed of layer {}'s {}",
                           group.last,
                           shape_text(network_.shape(group.last)),
                           group.first,
                           shape_text(network_.shape(group.first)));
    }
    return title + '\n' + table.text();
  }

  [[nodiscard]] std::string wire() const {
    TextTable table({{"rank"}, {"gradient reduction sent"}, {"received"}, {"statistics received"}});
    std::vector<Index> received;
    for (const Traffic& traffic : totals_.gradient_reduction_in) {
      received.push_back(traffic.bytes);
    }
    for (const RankRow& row : rows_of_ranks(received)) {
      const auto rank = static_cast<std::size_t>(row.rank);
      table.add_row({row.label,
                     readable_bytes(totals_.gradient_reduction_out[rank].bytes),
                     readable_bytes(totals_.gradient_reduction_in[rank].bytes),
                     readable_bytes(totals_.batch_statistics_in_bytes[rank])});
    }
    return table.text();
  }

  // Ten kinds side by side: long names take two lines.
  [[nodiscard]] static std::string memory_title(const std::string& name) {
    constexpr std::size_t kLongest = 8;
    constexpr std::size_t kFirst = 5;
    return name.size() <= kLongest ? "\n" + name
                                   : name.substr(0, kFirst) + "-\n" + name.substr(kFirst);
  }

  [[nodiscard]] std::string memory() const {
    std::vector<Column> columns = {{"\nrank"}};
    const std::vector<MemoryKind> kinds = memory_kinds_of(memory_);
    for (const MemoryKind& kind : kinds) {
      columns.push_back({memory_title(kind.name)});
    }
    columns.push_back({"\ntotal"});
    TextTable table(columns, 1);
    std::vector<Index> totals;
    for (const MemoryUse& use : memory_) {
      totals.push_back(use.total());
    }
    for (const RankRow& row : rows_of_ranks(totals)) {
      const MemoryUse& use = memory_[static_cast<std::size_t>(row.rank)];
      std::vector<std::string> cells = {row.label};
      for (const MemoryKind& kind : kinds) {
        cells.push_back(mebibytes(use.*kind.bytes));
      }
      cells.push_back(mebibytes(use.total()));
      table.add_row(std::move(cells));
    }
    return table.text();
  }

  [[nodiscard]] std::string activations() const {
    TextTable table(
        {{"rank"}, {"maps"}, {"pre-activations"}, {"argmax"}, {"the rest"}, {"inputs once"}});
    std::vector<ActivationKinds> kinds;
    std::vector<Index> totals;
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      kinds.push_back(activation_kinds(network_,
                                       plan_,
                                       rank,
                                       {.scalar_bytes = options_.memory.scalar_bytes,
                                        .image_gradient = options_.memory.image_gradient}));
      totals.push_back(memory_[static_cast<std::size_t>(rank)].activations);
    }
    for (const RankRow& row : rows_of_ranks(totals)) {
      const ActivationKinds& of = kinds[static_cast<std::size_t>(row.rank)];
      table.add_row({row.label,
                     mebibytes(of.maps),
                     mebibytes(of.pre_activations),
                     mebibytes(of.argmax),
                     mebibytes(of.turns),
                     mebibytes(of.least)});
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
  return planned_memory_of_ranks(
      network, plan, options.memory, options.workspace_bytes, options.program_bytes);
}

std::string plan_table(const Network& network,
                       const Plan& plan,
                       const Partition& partition,
                       const ReportOptions& options) {
  return Report(network, plan, partition, options).table();
}

std::string plan_overview(const Network& network,
                          const Plan& plan,
                          const Partition& partition,
                          const ReportOptions& options) {
  return Report(network, plan, partition, options).overview();
}

std::string plan_summary(const Network& network,
                         const Plan& plan,
                         const Partition& partition,
                         const ReportOptions& options) {
  return Report(network, plan, partition, options).summary();
}

}  // namespace tessera::partitioner
