#include "partitioner/plan/plan.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "partitioner/base/errors.h"
#include "partitioner/network/layer_traits.h"
#include "partitioner/plan/deferred_weights.h"
#include "partitioner/plan/forward_parts.h"
#include "partitioner/plan/parameter_runs.h"
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
    plan_.replicas = partition.replicas;
    plan_.gradient_reduction = partition.gradient_reduction;
    if (plan_.replicas.independent()) {  // within a replica all is exact
      plan_.sync_compression =
          std::exchange(plan_.gradient_reduction.compression, Compression::Exact);
    }
    expects(plan_.gradient_reduction.optimizer == OptimizerStates::Sharded ||
                (plan_.gradient_reduction.compression == Compression::Exact &&
                 !plan_.replicas.independent()),
            "a replicated optimizer has the exact gradients of all ranks");
    plan_.group_of.resize(network.layers.size());
    for (std::size_t g = 0; g < partition.groups.size(); ++g) {
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
    for (const Group& group : partition_.groups) {
      plan_.groups.push_back(group_geometry(network_, group, plan_.ranks, plan_.batch));
    }
    own_image();
    place_buffers();
    for (int layer = 0; layer < network_.size(); ++layer) {
      share_parameters(layer);
    }
    send_targets();
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

  [[nodiscard]] const Tile& tile(int map, int rank) const { return plan_.tile(map, rank); }

  // The image belongs to the rank that reads it, or where each rank reads its own part, to the
  // tiles of the first group.
  void own_image() {
    std::vector<Region> owned(ranks());
    if (const auto reader = plan_.reader.single_rank()) {
      owned[static_cast<std::size_t>(*reader)] = whole_map(network_, kImage, plan_.batch);
    } else {
      owned = owned_image(network_, partition_.groups.front(), plan_.ranks, plan_.batch);
    }
    for (const Region& region : owned) {
      plan_.image.push_back({region, region, region});
    }
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
    plan_.produced_in.assign(
        ranks(), IndexedVector<MapSlot, BufferIndex>(network_.layers.size() + 1, kNoBuffer));
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

  BufferIndex new_buffer(int rank, int map, const Region& region) {
    return plan_.buffers[static_cast<std::size_t>(rank)].push_back({map, region});
  }

  // The producer writes into one buffer; a group elsewhere reads the same one where a hull of both
  // is no larger than the two separately (the halo around a tile), and a buffer of its own where it
  // is (another cut).
  void place_map(int map) {
    std::set<int> groups;
    for (const Consumer& reader : consumers_of(map)) {
      groups.insert(plan_.group(reader.layer));
    }
    std::map<int, std::vector<BufferIndex>> buffer_of;  // group -> rank -> buffer
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      Region produced =
          hull(tile(map, rank).computed, required_by_group(map, plan_.group(map), rank));
      std::map<int, Region> separate_regions;
      for (const int group : groups) {
        const Region required = required_by_group(map, group, rank);
        const Region both = hull(produced, required);
        if (both.volume() <= produced.volume() + required.volume() && !produced.empty()) {
          produced = both;
        } else if (!required.empty()) {
          separate_regions[group] = required;
        }
      }
      BufferIndex& home = plan_.produced_in[static_cast<std::size_t>(rank)][map_slot(map)];
      home = produced.empty() ? kNoBuffer : new_buffer(rank, map, produced);
      for (const int group : groups) {
        const auto separate = separate_regions.find(group);
        const BufferIndex buffer =
            separate == separate_regions.end() ? home : new_buffer(rank, map, separate->second);
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

  void send_map(int map, int group, const std::vector<BufferIndex>& buffers) {
    const auto& required = plan_.groups[static_cast<std::size_t>(group)].required.at(map);
    Transfer transfer{.kind = TransferKind::FeatureMap,
                      .subject = map,
                      .group = group,
                      .messages = messages_between(owned_regions(plan_, map), required),
                      .is_sent = plan_.reader.is_sent(map),
                      .waits_for_sends = false};
    std::erase_if(transfer.messages, [&](const Message& message) {
      const bool in_place =
          buffers[static_cast<std::size_t>(message.to)] == plan_.producer(message.to, map);
      return message.from == message.to && in_place;
    });
    plan_.transfers.push_back(std::move(transfer));
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

  ParameterPlan share_parameter(int layer, ParameterKind kind, const ParameterShape& shape) {
    const LayerSpec& spec = network_.layer(layer);
    ParameterPlan result;
    result.layer = layer;
    result.kind = kind;
    result.shape = shape;
    result.frozen = spec.frozen;
    result.learning = spec.learning;
    result.held =
        spec.learning.norm_only && (kind == ParameterKind::Weight || !normalizes(spec.operation));
    result.copies = plan_.copies();
    for (const Tile& tile : plan_.tiles_of(layer)) {
      result.required.push_back(tile.computed.empty() ? Range{} : tile.computed.channels);
    }
    result.owned.resize(ranks());
    for (int copy = 0; copy < plan_.copies(); ++copy) {
      share_copy(shape, tiles_of_copy(plan_, layer, copy), result);
    }
    result.updated = result.owned;
    if (plan_.gradient_reduction.optimizer == OptimizerStates::Replicated && is_learnt(result)) {
      for (std::size_t rank = 0; rank < ranks(); ++rank) {
        const Range& channels = result.required[rank];
        result.updated[rank].clear();
        if (!channels.empty()) {
          result.updated[rank].push_back({channels.begin * shape.row, channels.end * shape.row});
        }
      }
    }
    std::stable_sort(
        result.messages.begin(), result.messages.end(), [](const Message& a, const Message& b) {
          return a.to != b.to ? a.to < b.to : a.from < b.from;
        });
    return result;
  }

  static void share_copy(const ParameterShape& shape,
                         const std::vector<Tile>& tiles,
                         ParameterPlan& result) {
    for (const SharedRun& run : shared_runs(shape, tiles)) {
      expects(!run.ranks.empty(), "each output channel is computed by some rank");
      Index begin = run.begin;
      for (std::size_t i = 0; i < run.ranks.size(); ++i) {
        const Range own{begin, begin + run.shares[i]};
        begin = own.end;
        if (!own.empty()) {
          result.owned[static_cast<std::size_t>(run.ranks[i])].push_back(own);
          send_run(run.ranks[i], own, run.ranks, result.messages);
        }
      }
    }
  }

  static void send_run(int owner,
                       const Range& elements,
                       const std::vector<int>& holders,
                       std::vector<Message>& messages) {
    for (const int holder : holders) {
      if (holder != owner) {
        messages.push_back({owner, holder, Payload::element_run(elements)});
      }
    }
  }

  void plan_weight_parts() {
    plan_.deferred = deferred_weights(network_, plan_);
    for (int layer = 0; layer < network_.size(); ++layer) {
      const auto at = static_cast<std::size_t>(layer);
      for (int rank = 0; learns(network_.layer(layer)) && rank < plan_.ranks; ++rank) {
        plan_.layers[static_cast<std::size_t>(rank)][at].weight_parts =
            weight_parts(plan_.deferred[at],
                         plan_.kernels_of(layer).backward_weights,
                         tile(layer, rank).backward);
      }
    }
  }

  void send_targets() {
    const auto reader = plan_.reader.single_rank();
    if (!reader) {
      return;
    }
    for (int to = 0; to < plan_.ranks; ++to) {
      if (to != *reader) {
        plan_.targets.push_back({*reader, to, Payload::images({0, plan_.batch})});
      }
    }
  }

  const Network& network_;
  const Partition& partition_;
  IndexedVector<MapSlot, std::vector<Consumer>> consumers_;  // by layer
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
  if (!plan.reader.is_every_rank()) {
    return plan.tile(kImage, rank).owned;
  }
  const BufferIndex buffer = image_buffer(plan, rank);
  return buffer == kNoBuffer
             ? Region{}
             : intersect(plan.buffer(rank, buffer).region, whole_map(network, kImage, plan.batch));
}

BufferIndex image_buffer(const Plan& plan, int rank) {
  return plan.reader.is_every_rank() ? plan.read_from[static_cast<std::size_t>(rank)][0][0]
                                     : plan.producer(rank, kImage);
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
  groups.reserve(plan.groups.size());
  for (const GroupGeometry& group : plan.groups) {
    groups.push_back({group.first, group.last});
  }
  return groups;
}

Work forward_work(const Network& network, const Plan& plan, int layer, int rank) {
  const Tile& tile = plan.tile(layer, rank);
  const Index computed = multiply_adds(network, layer, tile.computed);
  return {computed, computed - multiply_adds(network, layer, tile.owned)};
}

}  // namespace tessera::partitioner
