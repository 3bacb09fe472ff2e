#include "partitioner/plan/cut_mapping.h"

#include <algorithm>
#include <utility>

#include "partitioner/network/layer_traits.h"

namespace tessera::partitioner {

namespace {

// Where a boundary of a layer's output lies on one of its inputs, for one dimension. Any monotone
// answer gives a sound plan; following strides gives one in which tiles are adjacent where windows
// begin.
using Mapping = Index (*)(Index boundary, Index output_extent, Index input_extent, Index factor);

Index multiply(Index boundary, Index, Index, Index factor) {
  return boundary * factor;
}
Index divide_up(Index boundary, Index, Index, Index factor) {
  return (boundary + factor - 1) / factor;
}
Index subtract_offset(Index boundary, Index, Index, Index factor) {
  return boundary - factor;
}
Index proportional(Index boundary, Index output_extent, Index input_extent, Index) {
  return output_extent == 0 ? 0 : boundary * input_extent / output_extent;
}

Boundaries map_down(const Boundaries& boundaries,
                    Mapping mapping,
                    Index output_extent,
                    Index input_extent,
                    Index factor) {
  Boundaries result;
  Index least = 0;
  for (const Index boundary : boundaries) {
    const Index mapped = mapping(boundary, output_extent, input_extent, factor);
    least = std::clamp(mapped, least, input_extent);
    result.push_back(least);
  }
  result.front() = 0;  // the first and the last tile reach to the edge
  result.back() = input_extent;
  return result;
}

struct Step {
  Mapping mapping = proportional;
  Index factor = 1;
};

// How boundaries of rows, or of columns, move from the output of `layer` to its input number
// `input`.
Step spatial_step(const Network& network, int layer, std::size_t input, Index PerAxis::*axis) {
  const LayerSpec& spec = network.layer(layer);
  if (const auto* convolution = std::get_if<Convolution>(&spec.operation)) {
    return {multiply, convolution->stride.*axis};
  }
  if (const auto* deconvolution = std::get_if<Deconvolution>(&spec.operation)) {
    return {divide_up, deconvolution->stride.*axis};
  }
  if (const auto* pool = std::get_if<MaxPool>(&spec.operation)) {
    return {multiply, pool->stride.*axis};
  }
  if (const auto* local = std::get_if<Local>(&spec.operation)) {
    return {multiply, local->stride};
  }
  if (const auto* upsample = std::get_if<Upsample>(&spec.operation)) {
    return {divide_up, upsample->stride};
  }
  if (const auto* depth = std::get_if<SpaceToDepth>(&spec.operation)) {
    return {multiply, depth->stride};
  }
  if (std::holds_alternative<Shortcut>(spec.operation) && input > 0) {
    const Index source = network.shape(spec.inputs[input]).rows;
    const Index target = spec.output.rows;
    return source >= target ? Step{multiply, source / target} : Step{divide_up, target / source};
  }
  return {};
}

// The channels of inputs[0 .. input) that a route puts before those of inputs[input], less where
// its slice begins.
Index route_offset(const Network& network, int layer, std::size_t input) {
  const LayerSpec& spec = network.layer(layer);
  const Route& route = std::get<Route>(spec.operation);
  Index offset = 0;
  for (std::size_t i = 0; i < input; ++i) {
    offset += network.shape(spec.inputs[i]).channels / route.groups;
  }
  return offset - network.shape(spec.inputs[input]).channels / route.groups * route.group;
}

Step channel_step(const Network& network, int layer, std::size_t input) {
  const LayerSpec& spec = network.layer(layer);
  if (std::holds_alternative<Route>(spec.operation)) {
    return {subtract_offset, route_offset(network, layer, input)};
  }
  if (std::holds_alternative<Shortcut>(spec.operation)) {
    return {multiply, 1};
  }
  return {};
}

}  // namespace

MapCut cut_of_output(const Network& network, const Group& group, Index batch) {
  const MapShape& out = network.shape(group.last);
  MapCut cut{cut_boundaries(group.images, batch),
             cut_boundaries(group.channels, out.channels),
             cut_boundaries(group.rows, out.rows),
             cut_boundaries(group.cols, out.cols)};
  for (const Cut& band : group.bands) {
    cut.bands.push_back(cut_boundaries(band, batch));
  }
  return cut;
}

MapCut cut_of_input(const Network& network, int layer, std::size_t input, const MapCut& cut) {
  const MapShape& output = network.shape(layer);
  const MapShape& source = network.shape(network.layer(layer).inputs[input]);
  const Step row = spatial_step(network, layer, input, &PerAxis::rows);
  const Step col = spatial_step(network, layer, input, &PerAxis::cols);
  const Step channel = channel_step(network, layer, input);
  return {cut.images,
          map_down(cut.channels, channel.mapping, output.channels, source.channels, channel.factor),
          map_down(cut.rows, row.mapping, output.rows, source.rows, row.factor),
          map_down(cut.cols, col.mapping, output.cols, source.cols, col.factor),
          cut.bands};
}

namespace {

// The same cut of a map of another shape, in proportion.
MapCut scaled_cut(const MapCut& cut, const MapShape& from, const MapShape& to) {
  return {cut.images,
          map_down(cut.channels, proportional, from.channels, to.channels, 1),
          map_down(cut.rows, proportional, from.rows, to.rows, 1),
          map_down(cut.cols, proportional, from.cols, to.cols, 1),
          cut.bands};
}

// The first layer of the group that reads the map, and by which of its inputs; layer -1 where none
// does.
std::pair<int, std::size_t> first_reader(const Network& network, const Group& group, int map) {
  for (int layer = std::max(map + 1, group.first); layer <= group.last; ++layer) {
    const auto& inputs = network.layer(layer).inputs;
    const auto found = std::find(inputs.begin(), inputs.end(), map);
    if (found != inputs.end()) {
      return {layer, static_cast<std::size_t>(found - inputs.begin())};
    }
  }
  return {-1, 0};
}

// What is said of a cell by a head takes all of its channels: the first of the parts of the
// channels owns them.
void keep_heads_whole(const Network& network, int map, MapCut& cut) {
  if (is_head(network.layer(map).operation)) {
    std::fill(cut.channels.begin() + 1, cut.channels.end(), network.shape(map).channels);
  }
}

}  // namespace

std::vector<MapCut> cuts_of_group(const Network& network, const Group& group, Index batch) {
  const MapShape& out = network.shape(group.last);
  std::vector<MapCut> cuts(static_cast<std::size_t>(group.last - group.first) + 1);
  const auto cut_of = [&](int map) -> MapCut& {
    return cuts[static_cast<std::size_t>(map - group.first)];
  };
  cuts.back() = cut_of_output(network, group, batch);
  keep_heads_whole(network, group.last, cuts.back());
  for (int map = group.last - 1; map >= group.first; --map) {
    const auto [layer, input] = first_reader(network, group, map);
    cut_of(map) = layer >= 0
                      ? cut_of_input(network, layer, input, cut_of(layer))
                      : scaled_cut(cut_of_output(network, group, batch), out, network.shape(map));
    keep_heads_whole(network, map, cut_of(map));
  }
  return cuts;
}

MapCut cut_of_image(const Network& network, const Group& first, Index batch) {
  return cut_of_input(network, 0, 0, cuts_of_group(network, first, batch).front());
}

Region tile_region(const MapCut& cut, Index tile) {
  const auto parts_of = [](const Boundaries& boundaries) {
    return static_cast<Index>(boundaries.size()) - 1;
  };
  const auto part = [](const Boundaries& boundaries, Index number) {
    const auto at = static_cast<std::size_t>(number);
    return Range{boundaries[at], boundaries[at + 1]};
  };
  const auto pick = [&](const Boundaries& boundaries) {
    const Index number = tile % parts_of(boundaries);
    tile /= parts_of(boundaries);
    return part(boundaries, number);
  };
  Index band = 0;
  const Boundaries* images = &cut.images;
  if (!cut.bands.empty()) {
    images = cut.bands.data();
    const Index tiles_per_part = parts_of(cut.channels) * parts_of(cut.cols);
    for (; tile >= parts_of(*images) * tiles_per_part; ++images, ++band) {
      tile -= parts_of(*images) * tiles_per_part;
    }
  }
  Region region;
  region.cols = pick(cut.cols);
  region.rows = cut.bands.empty() ? pick(cut.rows) : part(cut.rows, band);
  region.channels = pick(cut.channels);
  region.images = pick(*images);
  return region;
}

}  // namespace tessera::partitioner
