#include "partitioner/plan/forward_parts.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "partitioner/plan/plan_totals.h"

namespace tessera::partitioner {

namespace {

constexpr Index kGrid = 4;           // side of the largest Winograd tile
constexpr Index kRun = 28;           // cells that kernels compute side by side, a multiple of all
constexpr Index kFewestCells = 512;  // fewer would pay more for packing weights twice

// Kernels bring all filters into their order again for each part; Winograd's transform those that
// they do not keep, and read the others. On a Raspberry Pi 3 that takes as long for a filter as
// 100 Mbit/s take to bring this many cells of a channel.
constexpr double kCellsPerTransform = 1.5;
constexpr double kCellsPerKept = 0.25;
constexpr double kCellsPerWeight = 0.04;  // of a filter's window

constexpr Index kMostParts = 4;             // that images are computed in
constexpr Index kFewestAwaitedCells = 256;  // of all channels, in each of these parts

Index up_to_multiple(Index value, Index factor) {
  return (value + factor - 1) / factor * factor;
}

// The outputs of `computed` whose windows lie in `ready` cells of `extent`, or beside these.
Range complete(const WindowAxis& axis, const Range& computed, const Range& ready, Index extent) {
  Range outputs = computed;
  if (ready.begin > 0) {
    outputs.begin = std::max(outputs.begin,
                             up_to_multiple(ready.begin + axis.padding, axis.stride) / axis.stride);
  }
  if (ready.end < extent) {
    const Index last = ready.end + axis.padding - axis.extent();  // where the last window begins
    outputs.end = last < 0 ? outputs.begin : std::min(outputs.end, last / axis.stride + 1);
  }
  return outputs;
}

// Moves the ends of `inner` that lie inside `all` further in: at least `step` from the end of
// `all`, on the grid.
Range aligned(const Range& inner, const Range& all, Index step) {
  Range result = inner;
  if (inner.begin > all.begin) {
    const Index begin = all.begin + up_to_multiple(inner.begin - all.begin, step);
    result.begin = up_to_multiple(begin, kGrid);
  }
  if (inner.end < all.end) {
    const Index end = all.end - up_to_multiple(all.end - inner.end, step);
    result.end = end / kGrid * kGrid;
  }
  return result;
}

Range images_of_part(const Range& images, Index part, Index parts) {
  return {images.begin + images.size() * part / parts,
          images.begin + images.size() * (part + 1) / parts};
}

class TileParts {
 public:
  TileParts(const Network& network, const Plan& plan)
      : network_(network),
        plan_(plan),
        awaited_(network.layers.size(), std::vector<Index>(at(plan.ranks))),
        last_part_(network.layers.size()) {
    for (const Transfer& transfer : plan.transfers) {
      if (transfer.kind == TransferKind::FeatureMap && transfer.is_sent) {
        count(transfer);
      }
    }
  }

  [[nodiscard]] Region interior(int layer, int rank) const {
    const auto* shape = std::get_if<Convolution>(&network_.layer(layer).operation);
    if (shape == nullptr) {
      return {};
    }
    const int map = network_.layer(layer).inputs[0];
    const BufferIndex buffer = plan_.read_from[at(rank)][at(layer)][0];
    const bool in_place = buffer != kNoBuffer && buffer == plan_.producer(rank, map);
    const Index awaited = in_place ? awaited_cells(layer, rank) : 0;
    if (awaited == 0) {
      return {};
    }
    const Region& computed = plan_.tile(layer, rank).computed;
    const Region& ready = plan_.tile(map, rank).owned;
    const MapShape& input = network_.shape(map);
    if (!contains(ready.images, computed.images) ||
        !contains(ready.channels, Range{0, input.channels})) {
      return {};
    }
    Region result = computed;
    result.rows = aligned(
        complete(shape->rows(), computed.rows, ready.rows, input.rows), computed.rows, kGrid);
    const bool by_tiles = winograd_side(plan_.kernels_of(layer).forward) > 0;
    result.cols = aligned(complete(shape->cols(), computed.cols, ready.cols, input.cols),
                          computed.cols,
                          by_tiles ? kGrid : kRun);
    const Index cells = computed.images.size() * computed.rows.size() * computed.cols.size();
    if (cells < kFewestCells || 3 * result.volume() < computed.volume()) {
      return {};
    }
    const double prepared =
        cells_per_part(layer, rank) * static_cast<double>(border(computed, result).size());
    return static_cast<double>(awaited) >= prepared ? result : Region{};
  }

  // How many parts the images of the rank's tile are computed in, as they arrive.
  [[nodiscard]] Index parts_of_images(int layer, int rank) const {
    if (!std::holds_alternative<Convolution>(network_.layer(layer).operation)) {
      return 1;
    }
    const Region& computed = plan_.tile(layer, rank).computed;
    if (computed.images.size() < 2) {
      return 1;
    }
    const Index awaited = awaited_cells(layer, rank);
    if (awaited < 2 * kFewestAwaitedCells || !interior(layer, rank).empty()) {
      return 1;
    }
    const auto worth_it =
        static_cast<Index>(static_cast<double>(awaited) / cells_per_part(layer, rank));
    return std::max<Index>(
        1, std::min({computed.images.size(), worth_it, awaited / kFewestAwaitedCells, kMostParts}));
  }

  // The transfer of what `layer` waits for, in parts.
  [[nodiscard]] std::vector<Transfer> split(const Transfer& whole, int layer) const {
    std::vector<Transfer> result;
    std::vector<Index> parts_of_ranks;
    parts_of_ranks.reserve(at(plan_.ranks));
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      parts_of_ranks.push_back(parts_of_images(layer, rank));
    }
    for (const Message& message : whole.messages) {
      const Range& images = plan_.tile(layer, message.to).computed.images;
      const Index parts = parts_of_ranks[at(message.to)];
      for (Index part = 0; part < parts; ++part) {
        Region region = message.payload.cells();
        if (parts > 1) {
          region.images = intersect(region.images, images_of_part(images, part, parts));
        }
        if (region.empty()) {
          continue;
        }
        while (static_cast<Index>(result.size()) <= part) {
          Transfer& added = result.emplace_back(whole);
          added.messages.clear();
          added.part = static_cast<int>(result.size()) - 1;
        }
        result[static_cast<std::size_t>(part)].messages.push_back(
            {message.from, message.to, Payload::cells(region)});
      }
    }
    return result;
  }

  void fill(int layer, int rank, LayerPlan& result) const {
    const Region& computed = plan_.tile(layer, rank).computed;
    if (computed.empty()) {
      return;
    }
    std::vector<TilePart>& parts = result.forward_parts;
    const Region inner = interior(layer, rank);
    const Index count = inner.empty() ? parts_of_images(layer, rank) : 1;
    if (!inner.empty()) {
      parts = border(computed, inner);
      parts.insert(parts.begin(), {inner, inner.cols == computed.cols, 0});
    } else if (count > 1) {
      for (Index part = 0; part < count; ++part) {
        Region region = computed;
        region.images = images_of_part(computed.images, part, count);
        // The last images may all be there.
        parts.push_back(
            {region, true, std::min(static_cast<int>(part) + 1, last_part_[at(layer)])});
      }
    } else if (prepares_filters(layer, rank)) {
      parts.push_back({computed, true, 1});
    } else {
      parts.push_back({computed, true, last_part_[at(layer)]});
      return;
    }
    result.prepares_filters = keeps_filters(layer, rank);
  }

 private:
  static std::size_t at(int index) { return static_cast<std::size_t>(index); }

  void count(const Transfer& transfer) {
    const int reader = first_reader(network_, plan_, transfer.subject, transfer.group);
    last_part_[at(reader)] = std::max(last_part_[at(reader)], transfer.part + 1);
    for (const Message& message : transfer.messages) {
      if (message.from != message.to) {
        awaited_[at(reader)][at(message.to)] += message.payload.cells().volume();
      }
    }
  }

  // Cells of all channels of a convolution's input that the rank gets from others, for layers from
  // this one on.
  [[nodiscard]] Index awaited_cells(int layer, int rank) const {
    const int map = network_.layer(layer).inputs[0];
    return awaited_[at(layer)][at(rank)] / network_.shape(map).channels;
  }

  // Whether the rank transforms the layer's filters once for all parts of its tile.
  [[nodiscard]] bool keeps_filters(int layer, int rank) const {
    const Index side = winograd_side(plan_.kernels_of(layer).forward);
    const Index channels = network_.shape(network_.layer(layer).inputs[0]).channels;
    const Index filters = plan_.tile(layer, rank).computed.channels.size();
    return side > 0 && keeps_winograd_filters(side, channels, filters);
  }

  // What bringing the filters of one more part of the tile takes, in cells that could come
  // meanwhile.
  [[nodiscard]] double cells_per_part(int layer, int rank) const {
    const auto filters = static_cast<double>(plan_.tile(layer, rank).computed.channels.size());
    if (keeps_filters(layer, rank)) {
      return kCellsPerKept * filters;
    }
    if (winograd_side(plan_.kernels_of(layer).forward) > 0) {
      return kCellsPerTransform * filters;
    }
    const PerAxis& size = std::get<Convolution>(network_.layer(layer).operation).size;
    return kCellsPerWeight * filters * static_cast<double>(size.product());
  }

  // Whether the rank transforms the layer's filters while it waits for cells.
  [[nodiscard]] bool prepares_filters(int layer, int rank) const {
    return std::holds_alternative<Convolution>(network_.layer(layer).operation) &&
           keeps_filters(layer, rank) && awaited_cells(layer, rank) > 0;
  }

  const Network& network_;
  const Plan& plan_;
  std::vector<std::vector<Index>> awaited_;  // [layer][rank]: values of maps it reads first
  std::vector<int> last_part_;  // by layer: of what it waits for, counted from 1; 0: nothing
};

}  // namespace

int first_reader(const Network& network, const Plan& plan, int map, int group) {
  for (int layer = 0; layer < network.size(); ++layer) {
    const auto& inputs = network.layer(layer).inputs;
    if (plan.group(layer) == group &&
        std::find(inputs.begin(), inputs.end(), map) != inputs.end()) {
      return layer;
    }
  }
  return network.size();
}

Region interior(const Network& network, const Plan& plan, int layer, int rank) {
  return TileParts(network, plan).interior(layer, rank);
}

std::vector<TilePart> border(const Region& computed, const Region& interior) {
  std::vector<TilePart> parts;
  for (const Region& region : subtract(computed, interior)) {
    if (!parts.empty() && parts.back().region.rows == region.rows) {
      parts.back().ends_lines = false;  // the other side of the interior
    }
    parts.push_back({region, true, 1});
  }
  return parts;
}

void plan_forward_parts(const Network& network, Plan& plan) {
  IndexedVector<TransferIndex, Transfer> result;
  {
    const TileParts whole(network, plan);
    for (const Transfer& transfer : plan.transfers) {
      const int layer = first_reader(network, plan, transfer.subject, transfer.group);
      std::vector<Transfer> parts = whole.split(transfer, layer);
      if (parts.size() < 2) {
        result.push_back(transfer);
      } else {
        std::move(parts.begin(), parts.end(), std::back_inserter(result));
      }
    }
  }
  plan.transfers = std::move(result);
  const TileParts parts(network, plan);
  for (int rank = 0; rank < plan.ranks; ++rank) {
    for (int layer = 0; layer < network.size(); ++layer) {
      parts.fill(layer,
                 rank,
                 plan.layers[static_cast<std::size_t>(rank)][static_cast<std::size_t>(layer)]);
    }
  }
}

}  // namespace tessera::partitioner
