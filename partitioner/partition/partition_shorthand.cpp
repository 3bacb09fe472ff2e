// The command line's shorthand for the common partitions: tiles first, then whole images or output
// channels.

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <string_view>

#include "partitioner/base/errors.h"
#include "partitioner/base/number_text.h"
#include "partitioner/network/layer_traits.h"
#include "partitioner/partition/partition.h"

namespace tessera::partitioner {

namespace {

constexpr Index kChannelStep =
    16;  // filter cuts lie on multiples of it, where tensors have their channel blocks

constexpr const char* kGridOption = "--grid";
constexpr const char* kGroupsOption = "--groups";
constexpr const char* kDataOption = "--data-parallel-from";
constexpr const char* kFilterOption = "--filter-parallel-from";
constexpr const char* kReaderOption = "--reader";
constexpr const char* kRanksOption = "--ranks";
constexpr const char* kRecomputeOption = "--recompute";

// The whole of `text` as a number from 0 to `most`, or -1.
Index whole_number(std::string_view text, Index most) {
  return parsed_number<Index>(text, 0, most).value_or(-1);
}

// What happens to a layer: tiles of a grid, whole images, or slices of its output channels.
enum class Way { Tiles, Images, Channels };

struct Span {
  int first = 0;
  int last = 0;
  Way way = Way::Tiles;
};

// Whether the layer reads all of an image whatever part of its output is asked for, so that tiles
// gain nothing.
bool reads_whole_map(const Operation& operation) {
  const auto* softmax = std::get_if<Softmax>(&operation);
  return layer_traits(operation).reads_whole_map && (softmax == nullptr || !softmax->spatial);
}

// Whether a slice of the layer's output channels can be computed without most of the other
// channels' work.
bool cuts_by_channel(const Operation& operation) {
  return layer_traits(operation).channel_slice != ChannelSlice::AllChannels;
}

class Maker {
 public:
  Maker(const Network& network, const Shorthand& shorthand)
      : network_(network), shorthand_(shorthand), tiles_(grid_tiles(shorthand)) {}

  Partition run() {
    check_options();
    choose_ranks();
    choose_hand_over();
    Partition partition;
    partition.network = fingerprint(network_);
    partition.ranks = std::max(shorthand_.ranks, workers_);
    partition.reader = shorthand_.reader;
    if (!partition.reader.is_among(partition.ranks)) {
      throw InputError(kReaderOption,
                       0,
                       fmt::format("there is no rank {}: give one from 0 to {}, or \"every\"",
                                   partition.reader.first_rank(),
                                   partition.ranks - 1));
    }
    for (const Span& span : spans()) {
      partition.groups.push_back(group_of(span));
    }
    recompute(partition.groups);
    return partition;
  }

 private:
  static int grid_tiles(const Shorthand& shorthand) {
    const Index rows = shorthand.grid_rows;
    const Index cols = shorthand.grid_cols;
    if (rows < 1 || cols < 1 || rows > kMostRanks / cols) {
      throw InputError(kGridOption,
                       0,
                       fmt::format("{}x{} is not a grid: give rows x columns, each at least 1 and "
                                   "at most {} tiles in all",
                                   rows,
                                   cols,
                                   kMostRanks));
    }
    return static_cast<int>(rows * cols);
  }

  void check_options() const {
    expects(network_.size() > 0, "a network has layers");
    check_start(kDataOption, shorthand_.data_parallel_from);
    check_start(kFilterOption, shorthand_.filter_parallel_from);
    if (shorthand_.data_parallel_from >= 0 &&
        shorthand_.data_parallel_from == shorthand_.filter_parallel_from) {
      throw InputError(kFilterOption,
                       0,
                       fmt::format("layer {} is also where {} starts: give them different layers",
                                   shorthand_.filter_parallel_from,
                                   kDataOption));
    }
    check_groups();
  }

  void check_start(const char* option, int layer) const {
    if (layer < -1 || layer > network_.size()) {
      throw InputError(
          option,
          0,
          fmt::format("there is no layer {}: the network's layers are 0 to {} ({} for none)",
                      layer,
                      network_.size() - 1,
                      network_.size()));
    }
  }

  void check_groups() const {
    int next = 0;
    for (const auto& [first, last] : shorthand_.groups) {
      if (first != next) {
        throw InputError(kGroupsOption,
                         0,
                         fmt::format("group {}-{} starts at layer {}, expected {}: groups follow "
                                     "each other from layer 0 on",
                                     first,
                                     last,
                                     first,
                                     next));
      }
      if (last < first || last >= network_.size()) {
        throw InputError(kGroupsOption,
                         0,
                         fmt::format("group {}-{} ends at layer {}, expected {} to {}",
                                     first,
                                     last,
                                     last,
                                     first,
                                     network_.size() - 1));
      }
      next = last + 1;
    }
  }

  // A grid of one tile leaves the other ranks idle unless images or filters are cut: those go over
  // all ranks.
  void choose_ranks() {
    if (shorthand_.ranks != 0 && shorthand_.ranks < tiles_) {
      throw InputError(kRanksOption,
                       0,
                       fmt::format("{} {}x{} needs {} ranks, there are {}: start more (mpiexec -n "
                                   "{}) or give a smaller grid",
                                   kGridOption,
                                   shorthand_.grid_rows,
                                   shorthand_.grid_cols,
                                   tiles_,
                                   shorthand_.ranks,
                                   tiles_));
    }
    const bool asked = shorthand_.data_parallel_from >= 0 || shorthand_.filter_parallel_from >= 0;
    workers_ = tiles_ == 1 && asked ? std::max(shorthand_.ranks, 1) : tiles_;
  }

  void choose_hand_over() {
    const int none = network_.size();
    filter_from_ = shorthand_.filter_parallel_from >= 0 ? shorthand_.filter_parallel_from : none;
    data_from_ = shorthand_.data_parallel_from;
    if (data_from_ < 0) {
      data_from_ = 0;
      while (data_from_ < none && (tiles_ == 1 || can_be_tiled(data_from_))) {
        ++data_from_;
      }
      if (data_from_ >= filter_from_) {
        data_from_ = none;  // the filter cut comes first and stays
      }
    }
  }

  [[nodiscard]] bool can_be_tiled(int layer) const {
    const LayerSpec& spec = network_.layer(layer);
    return !reads_whole_map(spec.operation) && spec.output.rows >= shorthand_.grid_rows &&
           spec.output.cols >= shorthand_.grid_cols;
  }

  [[nodiscard]] Way way_of(int layer) const {
    const bool images = layer >= data_from_;
    const bool channels = layer >= filter_from_;
    if (channels && (!images || filter_from_ > data_from_)) {
      return cuts_by_channel(network_.layer(layer).operation) ? Way::Channels : Way::Images;
    }
    return images ? Way::Images : Way::Tiles;
  }

  // The given groups, then a group for each layer; but neighbours that cut images are one group,
  // since no message is needed inside it.
  [[nodiscard]] std::vector<Span> spans() const {
    std::vector<Span> result;
    int next = 0;
    for (const auto& [first, last] : shorthand_.groups) {
      const Span span{first, last, way_of(first)};
      check_span(span);
      result.push_back(span);
      next = last + 1;
    }
    const std::size_t given = result.size();
    for (; next < network_.size(); ++next) {
      const Way way = way_of(next);
      if (way == Way::Images && result.size() > given && result.back().way == Way::Images) {
        result.back().last = next;
      } else {
        result.push_back({next, next, way});
      }
    }
    return result;
  }

  void check_span(const Span& span) const {
    for (int layer = span.first; layer <= span.last; ++layer) {
      if (way_of(layer) == span.way) {
        continue;
      }
      throw InputError(kGroupsOption,
                       0,
                       fmt::format("group {}-{} contains layer {} ({}), from which another cut "
                                   "applies: end the group at layer {}, or move the change with {}",
                                   span.first,
                                   span.last,
                                   layer,
                                   kind_name(network_.layer(layer).operation),
                                   layer - 1,
                                   layer >= filter_from_ ? kFilterOption : kDataOption));
    }
  }

  [[nodiscard]] Group group_of(const Span& span) const {
    Group group;
    group.first = span.first;
    group.last = span.last;
    int tiles = workers_;
    if (span.way == Way::Images) {
      group.images.parts = workers_;
    } else if (span.way == Way::Channels) {
      group.channels = filter_cut(network_.shape(span.last).channels);
    } else {
      group.rows.parts = shorthand_.grid_rows;
      group.cols.parts = shorthand_.grid_cols;
      tiles = tiles_;
    }
    for (int rank = 0; rank < tiles; ++rank) {
      group.ranks.push_back(rank);
    }
    return group;
  }

  [[nodiscard]] Cut filter_cut(Index channels) const {
    Cut cut;
    cut.parts = workers_;
    const std::vector<Index> even = cut_boundaries(cut, channels);
    const Index blocks = (channels + kChannelStep - 1) / kChannelStep;
    if (blocks < workers_) {
      return cut;
    }
    for (Index i = 0; i <= workers_; ++i) {
      cut.boundaries.push_back(std::min(blocks * i / workers_ * kChannelStep, channels));
    }
    if (cut.boundaries == even) {
      cut.boundaries.clear();
    }
    return cut;
  }

  void recompute(std::vector<Group>& groups) const {
    for (Group& group : groups) {
      group.recompute = shorthand_.recompute_all;
    }
    for (const auto& [first, last] : shorthand_.recompute) {
      const auto is_named = [first = first, last = last](const Group& group) {
        return group.first == first && group.last == last;
      };
      const auto found = std::find_if(groups.begin(), groups.end(), is_named);
      if (found == groups.end()) {
        throw InputError(
            kRecomputeOption,
            0,
            fmt::format("layers {} to {} are not a group: give groups as in {}, or \"all\"",
                        first,
                        last,
                        kGroupsOption));
      }
      found->recompute = true;
    }
  }

  const Network& network_;
  const Shorthand& shorthand_;
  int tiles_ = 1;
  int workers_ = 1;  // ranks with something to do
  int data_from_ = 0;
  int filter_from_ = 0;
};

}  // namespace

std::pair<Index, Index> squarest_grid(int tiles) {
  Index rows = 1;
  for (Index candidate = 1; candidate * candidate <= tiles; ++candidate) {
    rows = tiles % candidate == 0 ? candidate : rows;
  }
  return {rows, tiles / rows};
}

std::pair<Index, Index> parse_grid(const std::string& text,
                                   const std::string& option,
                                   const GridUnit& unit) {
  constexpr Index kMostRows = std::numeric_limits<Index>::max();
  const std::size_t cross = text.find('x');
  const std::string_view all = text;
  const Index rows = whole_number(all.substr(0, cross), kMostRows);
  const Index cols =
      cross == std::string::npos ? -1 : whole_number(all.substr(cross + 1), kMostRows);
  if (rows < 1 || cols < 1) {
    throw InputError(option,
                     0,
                     fmt::format("expected rows x columns of {}, for example {}, found \"{}\"",
                                 unit.name,
                                 unit.example,
                                 text));
  }
  if (rows > unit.most / cols) {  // their product may be beyond any number
    throw InputError(
        option, 0, fmt::format("{} is more than {} {}, the maximum", text, unit.most, unit.name));
  }
  return {rows, cols};
}

std::vector<std::pair<int, int>> parse_groups(const std::string& text, const std::string& option) {
  constexpr Index kMostLayers = 1'000'000;
  std::vector<std::pair<int, int>> groups;
  std::string_view rest = text;
  for (bool more = true; more;) {
    const std::size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    const std::size_t dash = item.find('-');
    const Index first = whole_number(item.substr(0, dash), kMostLayers);
    const Index last =
        dash == std::string::npos ? first : whole_number(item.substr(dash + 1), kMostLayers);
    if (first < 0 || last < first) {
      throw InputError(option,
                       0,
                       fmt::format("\"{}\" is not a group of layers: expected first-last or one "
                                   "layer, between commas, for example 0-3,4-7,8",
                                   item));
    }
    groups.emplace_back(static_cast<int>(first), static_cast<int>(last));
    more = comma != std::string::npos;
    rest.remove_prefix(more ? comma + 1 : rest.size());
  }
  return groups;
}

Partition make_partition(const Network& network, const Shorthand& shorthand) {
  Partition partition = Maker(network, shorthand).run();
  partition.kernels = choose_kernels(network, shorthand.kernels);
  return partition;
}

}  // namespace tessera::partitioner
