#include "partitioner/plan/plan.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "partitioner/base/errors.h"
#include "partitioner/network/layer_memory.h"
#include "partitioner/plan/cut_mapping.h"
#include "partitioner/plan/deferred_weights.h"
#include "partitioner/plan/forward_parts.h"
#include "partitioner/plan/transfers.h"

namespace tessera::partitioner {

namespace {

// A layer that reads a map: consumer.layer's inputs[consumer.input].
struct Consumer {
  int layer;
  std::size_t input;
};

class PlanMaker {
 public:
  PlanMaker(const Network& network, const Partition& partition, Index batch)
      : network_(network), partition_(partition), consumers_(network.layers.size() + 1) {
    plan_.batch = batch;
    plan_.ranks = partition.ranks;
    plan_.reader = partition.reader;
    plan_.kernels = partition.kernels;
    plan_.kernels.resize(network.layers.size());
    plan_.sums = partition.sums;
    plan_.group_of.resize(network.layers.size());
    for (std::size_t g = 0; g < partition.groups.size(); ++g) {
      plan_.recomputed.push_back(partition.groups[g].recompute);
      for (int layer = partition.groups[g].first; layer <= partition.groups[g].last; ++layer) {
        plan_.group_of[static_cast<std::size_t>(layer)] = static_cast<int>(g);
      }
    }
    for (int layer = 0; layer < network.size(); ++layer) {
      const auto& inputs = network.layer(layer).inputs;
      for (std::size_t input = 0; input < inputs.size(); ++input) {
        consumers_of(inputs[input]).push_back({layer, input});
      }
    }
  }

  Plan make() {
    plan_.tiles.assign(network_.layers.size() + 1, std::vector<Tile>(ranks()));
    for (const Group& group : partition_.groups) {
      own_group(group);
    }
    own_image();
    for (int map = network_.size() - 1; map >= kImage; --map) {
      for (int rank = 0; rank < plan_.ranks; ++rank) {
        compute_tile(map, rank);
      }
      if (collapses(map)) {
        plan_.collapses.push_back(collapse(map));
      }
    }
    std::reverse(plan_.collapses.begin(), plan_.collapses.end());
    place_buffers();
    for (int layer = 0; layer < network_.size(); ++layer) {
      share_parameters(layer);
    }
    send_truth();
    plan_layers(network_, plan_);
    plan_forward_parts(network_, plan_);
    plan_weight_parts();
    add_transfers(network_, plan_);
    plan_.schedule = make_schedule(network_, plan_, {});
    return std::move(plan_);
  }

 private:
  [[nodiscard]] std::size_t ranks() const { return static_cast<std::size_t>(plan_.ranks); }

  std::vector<Consumer>& consumers_of(int map) { return consumers_[map_slot(map)]; }

  Tile& tile(int map, int rank) {
    return plan_.tiles[map_slot(map)][static_cast<std::size_t>(rank)];
  }

  [[nodiscard]] Region clip(const Region& region, int map) const {
    return intersect(region, whole_map(network_, map, plan_.batch));
  }

  // Owned regions of all maps of a group.
  void own_group(const Group& group) {
    const std::vector<MapCut> cuts = cuts_of_group(network_, group, plan_.batch);
    for (std::size_t layer = 0; layer < cuts.size(); ++layer) {
      for (std::size_t t = 0; t < group.ranks.size(); ++t) {
        tile(group.first + static_cast<int>(layer), group.ranks[t]).owned =
            tile_region(cuts[layer], static_cast<Index>(t));
      }
    }
  }

  // The image belongs to the rank that reads it, or where each rank reads its own part, to the
  // tiles of the first group.
  void own_image() {
    if (plan_.reader != kEveryRank) {
      tile(kImage, plan_.reader).owned = whole_map(network_, kImage, plan_.batch);
      return;
    }
    const Group& first = partition_.groups.front();
    const MapCut cut = cut_of_image(network_, first, plan_.batch);
    for (std::size_t t = 0; t < first.ranks.size(); ++t) {
      tile(kImage, first.ranks[t]).owned = tile_region(cut, static_cast<Index>(t));
    }
  }

  void compute_tile(int map, int rank) {
    Tile& here = tile(map, rank);
    here.computed = here.owned;
    here.backward = here.owned;
    for (const Consumer& reader : consumers_of(map)) {
      if (plan_.group(reader.layer) != plan_.group(map)) {
        continue;
      }
      const Tile& above = tile(reader.layer, rank);
      const auto require = [&](const Region& output) {
        return clip(required_input(network_, reader.layer, reader.input, output), map);
      };
      here.computed = hull(here.computed, require(above.computed));
      here.backward = hull(here.backward, require(above.backward));
    }
  }

  [[nodiscard]] bool collapses(int map) const {
    if (map == kImage) {
      return false;
    }
    const auto& layers = partition_.groups[static_cast<std::size_t>(plan_.group(map))].collapse;
    return std::find(layers.begin(), layers.end(), map) != layers.end();
  }

  // Afterwards the gradient lives on owned cells only.
  Exchange collapse(int map) {
    Exchange exchange{map, plan_.group(map), {}};
    for (int to = 0; to < plan_.ranks; ++to) {
      for (int from = 0; from < plan_.ranks; ++from) {
        const Region shared = intersect(tile(map, from).owned, tile(map, to).backward);
        if (from != to && !shared.empty()) {
          exchange.messages.push_back({from, to, shared});
        }
      }
    }
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      tile(map, rank).backward = tile(map, rank).owned;
    }
    return exchange;
  }

  // What the layers of `group` on `rank` read of `map`, borders included.
  Region required_by_group(int map, int group, int rank) {
    Region region;
    for (const Consumer& reader : consumers_of(map)) {
      if (plan_.group(reader.layer) == group) {
        region = hull(region,
                      required_input(
                          network_, reader.layer, reader.input, tile(reader.layer, rank).computed));
      }
    }
    return region;
  }

  void place_buffers() {
    plan_.buffers.resize(ranks());
    plan_.produced_in.assign(ranks(), std::vector<int>(network_.layers.size() + 1, kNoBuffer));
    plan_.read_from.resize(ranks());
    for (auto& layers : plan_.read_from) {
      for (const LayerSpec& spec : network_.layers) {
        layers.emplace_back(spec.inputs.size(), kNoBuffer);
      }
    }
    for (int map = kImage; map < network_.size(); ++map) {
      place_map(map);
    }
  }

  int new_buffer(int rank, int map, const Region& region) {
    auto& buffers = plan_.buffers[static_cast<std::size_t>(rank)];
    buffers.push_back({map, region});
    return static_cast<int>(buffers.size()) - 1;
  }

  // The producer writes into one buffer; a group elsewhere reads the same one where a hull of both
  // is no larger than the two apart (the halo around a tile), and a buffer of its own where it is
  // (another cut).
  void place_map(int map) {
    std::set<int> groups;
    for (const Consumer& reader : consumers_of(map)) {
      groups.insert(plan_.group(reader.layer));
    }
    std::map<int, std::vector<int>> buffer_of;  // group -> rank -> buffer
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      Region produced =
          hull(tile(map, rank).computed, required_by_group(map, plan_.group(map), rank));
      std::map<int, Region> apart;
      for (const int group : groups) {
        const Region required = required_by_group(map, group, rank);
        const Region both = hull(produced, required);
        if (both.volume() <= produced.volume() + required.volume() && !produced.empty()) {
          produced = both;
        } else if (!required.empty()) {
          apart[group] = required;
        }
      }
      int& home = plan_.produced_in[static_cast<std::size_t>(rank)][map_slot(map)];
      home = produced.empty() ? kNoBuffer : new_buffer(rank, map, produced);
      for (const int group : groups) {
        const auto separate = apart.find(group);
        const int buffer = separate == apart.end() ? home : new_buffer(rank, map, separate->second);
        buffer_of[group].push_back(buffer);
      }
    }
    for (const Consumer& reader : consumers_of(map)) {
      for (std::size_t rank = 0; rank < ranks(); ++rank) {
        plan_.read_from[rank][static_cast<std::size_t>(reader.layer)][reader.input] =
            buffer_of.at(plan_.group(reader.layer))[rank];
      }
    }
    for (const int group : groups) {
      if (group != plan_.group(map)) {
        send_map(map, group, buffer_of.at(group));
      }
    }
  }

  void send_map(int map, int group, const std::vector<int>& buffers) {
    Exchange exchange{map, group, {}};
    for (int to = 0; to < plan_.ranks; ++to) {
      const Region required = clip(required_by_group(map, group, to), map);
      const int home = plan_.producer(to, map);
      const bool in_place = buffers[static_cast<std::size_t>(to)] == home;
      for (int from = 0; from < plan_.ranks; ++from) {
        const Region shared = intersect(tile(map, from).owned, required);
        if (!shared.empty() && !(from == to && in_place)) {
          exchange.messages.push_back({from, to, shared});
        }
      }
    }
    plan_.exchanges.push_back(std::move(exchange));
  }

  void share_parameters(int layer) {
    const LayerParameters parameters = layer_parameters(network_, layer);
    const std::array shapes{
        parameters.weight, parameters.bias, parameters.scale, parameters.mean, parameters.variance};
    for (std::size_t k = 0; k < shapes.size(); ++k) {
      if (shapes[k].channels > 0 && shapes[k].row > 0) {
        plan_.parameters.push_back(share_parameter(layer, kParameterKinds[k], shapes[k]));
      }
    }
  }

  // Each run of channels that the same ranks require is divided evenly among them: they own it.
  ParameterPlan share_parameter(int layer, ParameterKind kind, const ParameterShape& shape) {
    ParameterPlan result{layer, kind, shape, {}, {}, {}};
    std::set<Index> ends{0, shape.channels};
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      const Region& computed = tile(layer, rank).computed;
      const Range channels = computed.empty() ? Range{} : computed.channels;
      result.required.push_back(channels);
      if (!channels.empty()) {
        ends.insert({channels.begin, channels.end});
      }
    }
    result.owned.resize(ranks());
    for (auto end = std::next(ends.begin()); end != ends.end(); ++end) {
      const Range channels{*std::prev(end), *end};
      std::vector<std::size_t> sharing;
      for (std::size_t rank = 0; rank < ranks(); ++rank) {
        if (!intersect(result.required[rank], channels).empty()) {
          sharing.push_back(rank);
        }
      }
      expects(!sharing.empty(), "each output channel is computed by some rank");
      const auto elements =
          cut_boundaries({static_cast<Index>(sharing.size()), {}}, channels.size() * shape.row);
      for (std::size_t i = 0; i < sharing.size(); ++i) {
        const Range run{channels.begin * shape.row + elements[i],
                        channels.begin * shape.row + elements[i + 1]};
        if (!run.empty()) {
          result.owned[sharing[i]].push_back(run);
        }
      }
    }
    send_parameter(result);
    return result;
  }

  void send_parameter(ParameterPlan& parameter) const {
    for (int to = 0; to < plan_.ranks; ++to) {
      const Range channels = parameter.required[static_cast<std::size_t>(to)];
      const Range elements{channels.begin * parameter.shape.row,
                           channels.end * parameter.shape.row};
      for (int from = 0; from < plan_.ranks; ++from) {
        for (const Range& run : parameter.owned[static_cast<std::size_t>(from)]) {
          const Range shared = intersect(run, elements);
          if (from != to && !shared.empty()) {
            parameter.messages.push_back({from, to, {{0, 1}, {0, 1}, {0, 1}, shared}});
          }
        }
      }
    }
  }

  void plan_weight_parts() {
    plan_.deferred = deferred_weights(network_, plan_);
    for (int layer = 0; layer < network_.size(); ++layer) {
      const auto at = static_cast<std::size_t>(layer);
      for (int rank = 0; has_weights(network_.layer(layer).operation) && rank < plan_.ranks;
           ++rank) {
        plan_.layers[static_cast<std::size_t>(rank)][at].weight_parts =
            weight_parts(plan_.deferred[at],
                         plan_.kernels_of(layer).backward_weights,
                         tile(layer, rank).backward);
      }
    }
  }

  void send_truth() {
    if (plan_.reader == kEveryRank) {
      return;
    }
    for (int to = 0; to < plan_.ranks; ++to) {
      if (to != plan_.reader) {
        plan_.truth.push_back({plan_.reader, to, {{0, plan_.batch}, {0, 1}, {0, 1}, {0, 1}}});
      }
    }
  }

  const Network& network_;
  const Partition& partition_;
  std::vector<std::vector<Consumer>> consumers_;  // by map + 1, by layer
  Plan plan_;
};

}  // namespace

Plan make_plan(const Network& network, const Partition& partition, Index batch) {
  expects(!partition.groups.empty() && batch > 0, "a partition has groups and a batch has images");
  return PlanMaker(network, partition, batch).make();
}

bool is_normalized(const Network& network, const ParameterPlan& parameter) {
  return parameter.kind != ParameterKind::Weight &&
         normalizes(network.layer(parameter.layer).operation);
}

Region image_region(const Network& network, const Plan& plan, int rank) {
  if (plan.reader != kEveryRank) {
    return plan.tile(kImage, rank).owned;
  }
  const int buffer = plan.read_from[static_cast<std::size_t>(rank)][0][0];
  return buffer == kNoBuffer
             ? Region{}
             : intersect(plan.buffer(rank, buffer).region, whole_map(network, kImage, plan.batch));
}

std::vector<Region> owned_regions(const Plan& plan, int map) {
  std::vector<Region> owned;
  owned.reserve(static_cast<std::size_t>(plan.ranks));
  for (int rank = 0; rank < plan.ranks; ++rank) {
    owned.push_back(plan.tile(map, rank).owned);
  }
  return owned;
}

std::vector<LayerRun> groups_of(const Plan& plan) {
  std::vector<LayerRun> groups;
  for (int layer = 0; layer < static_cast<int>(plan.group_of.size()); ++layer) {
    if (plan.group(layer) == static_cast<int>(groups.size())) {
      groups.push_back({layer, layer});
    }
    groups.back().last = layer;
  }
  return groups;
}

Work forward_work(const Network& network, const Plan& plan, int layer, int rank) {
  const Tile& tile = plan.tile(layer, rank);
  const Index computed = multiply_adds(network, layer, tile.computed);
  return {computed, computed - multiply_adds(network, layer, tile.owned)};
}

}  // namespace tessera::partitioner
