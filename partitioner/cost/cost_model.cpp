#include "partitioner/cost/cost_model.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <utility>

#include "partitioner/cost/compute_model.h"
#include "partitioner/cost/step_messages.h"
#include "partitioner/network/layer_traits.h"
#include "partitioner/plan/transfers.h"

namespace tessera::partitioner {

namespace {

// Bytes of what ranks own of what they all hold, by these ranks.
using SharedBytes = std::map<std::vector<int>, std::vector<Index>>;

void add_shares(const SharedRun& run,
                Index row,
                const Compression& compression,
                SharedBytes& bytes) {
  std::vector<Index>& shares = bytes[run.ranks];
  shares.resize(run.ranks.size());
  for (std::size_t i = 0; i < shares.size(); ++i) {
    shares[i] += packed_bytes(compression, {run.shares[i], row}, kSingleBytes);
  }
}

// Each owner's message to each of the others, or theirs to it.
void add_messages(const SharedBytes& shared,
                  const Compression& compression,
                  bool outward,
                  TransferLoad& load) {
  for (const auto& [ranks, shares] : shared) {
    std::vector<double> bytes;
    bytes.reserve(shares.size());
    for (const Index share : shares) {
      bytes.push_back(
          share == 0 ? 0 : static_cast<double>(share + packing_overhead_bytes(compression)));
    }
    load.add_one_to_all(ranks, bytes, outward);
  }
}

// Ranks at work side by side up to the next synchronisation.
class Segments {
 public:
  explicit Segments(int ranks) : seconds_(static_cast<std::size_t>(ranks)) {}

  void work(std::size_t rank, double seconds) { seconds_[rank] += seconds; }
  void synchronize() {
    total_ += *std::max_element(seconds_.begin(), seconds_.end());
    std::fill(seconds_.begin(), seconds_.end(), 0.0);
  }
  [[nodiscard]] double total() const { return total_; }

 private:
  std::vector<double> seconds_;
  double total_ = 0;
};

}  // namespace

double StepCost::total() const {
  double seconds = static_cast<double>(passes) * loss_s + norm_s;
  for (const GroupCost& group : groups) {
    seconds += group.total(passes);
  }
  return seconds;
}

std::vector<RecomputedLayer> recomputed_work(const Network& network, const GroupGeometry& group) {
  if (!group.recompute) {
    return std::vector<RecomputedLayer>(group.tiles.size());
  }
  return recomputed_work(network, {group.first, group.last}, group.reductions);
}

double loss_seconds(const ClusterProfile& cluster) {
  TransferLoad load(cluster);
  constexpr double kNumberBytes = 8;
  load.add_all_to_all(first_ranks(cluster.size()), kNumberBytes);
  return 2 * load.seconds();  // how many bytes will come, then these
}

// One group, or some ranks of it.
class GroupCosts::Adder {
 public:
  // `some` as for least(); null: all there are.
  Adder(GroupCosts& costs, const GroupGeometry& group, const SomeRanks* some)
      : costs_(costs),
        network_(costs.network_),
        group_(group),
        some_(some),
        again_(recomputed_work(network_, group)),
        load_(costs.load_),
        segments_(group.ranks()) {
    cost_.ranks.resize(static_cast<std::size_t>(group.ranks()));
  }

  GroupCost compute() {
    for (int layer = group_.first; layer <= group_.last; ++layer) {
      seconds_.push_back(seconds_of_ranks(layer));
    }
    for (int layer = group_.first; layer <= group_.last; ++layer) {
      forward(layer);
    }
    segments_.synchronize();
    for (int layer = group_.last; layer >= group_.first; --layer) {
      backward(layer);
    }
    segments_.synchronize();
    cost_.compute_s = segments_.total();
    for (const RankSeconds& rank : cost_.ranks) {
      cost_.recompute_s = std::max(cost_.recompute_s, rank.recompute_s);
    }
    const ReductionSeconds gradient_reduction = reduction();
    cost_.gradient_reduction_s = gradient_reduction.gradients_s;
    cost_.update_s = gradient_reduction.update_s;
    cost_.parameter_all_gather_s = gradient_reduction.values_s;
    return std::move(cost_);
  }

 private:
  [[nodiscard]] ReductionSeconds reduction() {
    return some_ == nullptr ? costs_.reduction_seconds(group_) : costs_.reduction_of(*some_);
  }

  std::vector<LayerSeconds> seconds_of_ranks(int layer) {
    std::vector<LayerSeconds> seconds;
    const auto& tiles = group_.tiles_of(layer);
    const RecomputedLayer& again = again_[static_cast<std::size_t>(layer - group_.first)];
    for (std::size_t rank = 0; rank < tiles.size(); ++rank) {
      const Tile& tile = tiles[rank];
      const int device = some_ == nullptr ? static_cast<int>(rank) : some_->ranks[rank];
      const LayerSeconds all = costs_.times_.seconds(layer, device, tile.computed, tile.backward);
      RankSeconds& sum = cost_.ranks[rank];
      sum.forward_s += all.forward_s;
      sum.backward_data_s += all.backward_data_s;
      sum.backward_weights_s += all.backward_weights_s;
      sum.other_s += all.other_forward_s + all.other_backward_s;
      sum.recompute_s += recompute_seconds(all, again);
      if (tile.computed != tile.owned) {
        const LayerSeconds owned = costs_.times_.seconds(layer, device, tile.owned, tile.owned);
        sum.redundant_s += all.total() - owned.total();
        sum.redundant_s += recompute_seconds(all, again) - recompute_seconds(owned, again);
      }
      seconds.push_back(all);
    }
    return seconds;
  }

  [[nodiscard]] const std::vector<LayerSeconds>& seconds(int layer) const {
    return seconds_[static_cast<std::size_t>(layer - group_.first)];
  }

  void synchronize_statistics(int layer, Region Tile::*contributes, Index numbers) {
    if (!takes_batch_statistics(network_.layer(layer))) {
      return;
    }
    const double statistics_s = statistics_seconds(layer, contributes, numbers);
    if (statistics_s > 0) {
      cost_.statistics_s += statistics_s;
      segments_.synchronize();
    }
  }

  // 0 where nothing is sent.
  double statistics_seconds(int layer, Region Tile::*contributes, Index numbers) {
    if (some_ != nullptr) {
      return costs_.statistics_of(*some_, layer, numbers);
    }
    load_.clear();
    add_statistics(group_.tiles_of(layer), contributes, numbers, load_);
    return load_.empty() ? 0 : load_.seconds();
  }

  void forward(int layer) {
    for (std::size_t rank = 0; rank < seconds(layer).size(); ++rank) {
      segments_.work(rank, seconds(layer)[rank].forward_s);
    }
    synchronize_statistics(layer, &Tile::owned, kStatisticsNumbers);
    for (std::size_t rank = 0; rank < seconds(layer).size(); ++rank) {
      segments_.work(rank, seconds(layer)[rank].other_forward_s);
    }
  }

  void backward(int layer) {
    for (const OwnerReduction& reduction : group_.reductions) {
      if (reduction.map == layer) {
        reduce_to_owners(reduction);
      }
    }
    for (std::size_t rank = 0; rank < seconds(layer).size(); ++rank) {
      segments_.work(rank, seconds(layer)[rank].other_backward_s);
    }
    synchronize_statistics(layer, &Tile::backward, kStatisticsGradientNumbers);
    for (std::size_t rank = 0; rank < seconds(layer).size(); ++rank) {
      const LayerSeconds& spent = seconds(layer)[rank];
      segments_.work(rank, spent.backward_data_s + spent.backward_weights_s);
    }
  }

  void reduce_to_owners(const OwnerReduction& reduction) {
    if (some_ != nullptr) {
      return;
    }
    load_.clear();
    for (const Message& message : reduction.messages) {
      load_.add({message.to, message.from, region_bytes(message.payload.cells())});
    }
    if (!load_.empty()) {
      cost_.owner_reduction_s += load_.seconds();
      segments_.synchronize();
    }
  }

  GroupCosts& costs_;
  const Network& network_;
  const GroupGeometry& group_;
  const SomeRanks* some_;
  std::vector<RecomputedLayer> again_;
  TransferLoad& load_;
  Segments segments_;
  std::vector<std::vector<LayerSeconds>> seconds_;  // [layer - first][rank]
  GroupCost cost_;
};

GroupCosts::GroupCosts(const Network& network,
                       const std::vector<ConvolutionKernels>& kernels,
                       const GradientReduction& gradient_reduction,
                       const ClusterProfile& cluster)
    : network_(network),
      gradient_reduction_(gradient_reduction),
      cluster_(cluster),
      times_(network, kernels, cluster),
      load_(cluster) {}

GroupCost GroupCosts::inner(const GroupGeometry& group) {
  return Adder(*this, group, nullptr).compute();
}

GroupCost GroupCosts::least(const SomeRanks& some) {
  return Adder(*this, some.geometry, &some).compute();
}

namespace {

// Ranks that have the same channels of a group's maps: those of one part, as many as any has.
struct ChannelPart {
  std::size_t part = 0;
  std::vector<int> ranks;

  [[nodiscard]] Range channels(const MapCut& cut) const {
    return {cut.channels[part], cut.channels[part + 1]};
  }
};

ChannelPart largest_part(const Group& group, const MapCut& output) {
  ChannelPart largest;
  for (std::size_t part = 1; part + 1 < output.channels.size(); ++part) {
    if (largest.channels(output).size() < ChannelPart{part, {}}.channels(output).size()) {
      largest.part = part;
    }
  }
  const auto parts = static_cast<std::size_t>(group.channels.parts);
  const auto inner = parts == 1 ? 1 : static_cast<std::size_t>(group.rows.parts * group.cols.parts);
  for (std::size_t tile = 0; tile < group.ranks.size(); ++tile) {
    if (tile / inner % parts == largest.part) {
      largest.ranks.push_back(group.ranks[tile]);
    }
  }
  return largest;
}

std::vector<Index> key_of(std::initializer_list<Index> numbers, const std::vector<int>& ranks) {
  std::vector<Index> key = numbers;
  key.insert(key.end(), ranks.begin(), ranks.end());
  return key;
}

}  // namespace

// Ranks send what they know of channels to those that have the same ones.
double GroupCosts::statistics_of(const SomeRanks& some, int layer, Index numbers) {
  const ChannelPart part = largest_part(some.group, some.cuts.back());
  const MapCut& cut = some.cuts[static_cast<std::size_t>(layer - some.group.first)];
  const double bytes = statistics_bytes(numbers, part.channels(cut).size());
  const auto [found, is_new] =
      whole_statistics_.try_emplace(key_of({static_cast<Index>(bytes)}, part.ranks), 0);
  if (is_new) {
    load_.clear();
    load_.add_all_to_all(part.ranks, bytes);
    found->second = load_.empty() ? 0 : load_.seconds();
  }
  return found->second;
}

// As if each rank had one cell of every map.
GroupCosts::ReductionSeconds GroupCosts::reduction_of(const SomeRanks& some) {
  const auto [first, last] = std::pair(some.group.first, some.group.last);
  const ChannelPart part = largest_part(some.group, some.cuts.back());
  const Range channels = part.channels(some.cuts.back());
  const auto [found, is_new] = whole_reductions_.try_emplace(
      key_of({first, last, channels.begin, channels.end}, part.ranks));
  if (is_new) {
    GroupGeometry geometry;
    geometry.first = first;
    geometry.last = last;
    for (const MapCut& cut : some.cuts) {
      const Region cell{{0, 1}, part.channels(cut), {0, 1}, {0, 1}};
      auto& tiles = geometry.tiles.emplace_back(cluster_.devices.size());
      for (const int rank : part.ranks) {
        tiles[static_cast<std::size_t>(rank)] = {cell, cell, cell};
      }
    }
    found->second = computed_reduction(geometry);
  }
  return found->second;
}

GroupCosts::ReductionSeconds GroupCosts::reduction_seconds(const GroupGeometry& group) {
  std::vector<Index> key{group.first};
  for (const auto& tiles : group.tiles) {
    for (const Tile& tile : tiles) {
      const Range channels = tile.computed.empty() ? Range{} : tile.computed.channels;
      key.insert(key.end(), {channels.begin, channels.end});
    }
  }
  const auto found = known_reductions_.lower_bound(key);
  if (found != known_reductions_.end() && found->first == key) {
    return found->second;
  }
  return known_reductions_.emplace_hint(found, std::move(key), computed_reduction(group))->second;
}

// In a message from one rank to another what the group's layers have: buckets may reach beyond it,
// or divide it.
GroupCosts::ReductionSeconds GroupCosts::computed_reduction(const GroupGeometry& group) {
  const Compression& compression = gradient_reduction_.compression;
  SharedBytes gradients;
  SharedBytes values;
  std::vector<double> updates(static_cast<std::size_t>(group.ranks()));
  for (int layer = group.first; layer <= group.last; ++layer) {
    for (const SharedParameter& parameter :
         shared_parameters(network_, layer, group.tiles_of(layer))) {
      for (const SharedRun& run : parameter.runs) {
        add_shares(run, parameter.row, compression, values);
        if (parameter.gradient_sent) {
          add_shares(run, parameter.row, compression, gradients);
        }
      }
      const auto update = [&](int rank, Index elements) {
        updates[static_cast<std::size_t>(rank)] +=
            static_cast<double>(elements) / cluster_.device(rank).updated_weights_per_s;
      };
      for_each_share(parameter, update);
      if (gradient_reduction_.optimizer == OptimizerStates::Replicated) {
        for_each_message(parameter, [&](int /*owner*/, int holder, Index elements) {
          update(holder, elements);
        });
      }
    }
  }
  ReductionSeconds seconds;
  load_.clear();
  add_messages(gradients, compression, false, load_);
  seconds.gradients_s = load_.seconds();
  load_.clear();
  add_messages(values, compression, true, load_);
  seconds.values_s = load_.seconds();
  seconds.update_s = *std::max_element(updates.begin(), updates.end());
  return seconds;
}

ExchangeSeconds exchange_seconds(const OverlapIndex& owned,
                                 const std::vector<Region>& required,
                                 TransferLoad& load) {
  load.clear();
  for (std::size_t rank = 0; rank < required.size(); ++rank) {
    const auto to = static_cast<int>(rank);
    owned.for_each(required[rank], [&](int from, const Region& shared) {
      load.add({from, to, region_bytes(shared)});
    });
  }
  return {load.seconds(), load.reversed_seconds()};
}

namespace {

// Who owns each map.
using Owners = IndexedVector<MapSlot, std::vector<Region>>;

class StepCostSum {
 public:
  StepCostSum(const Network& network,
              const std::vector<ConvolutionKernels>& kernels,
              const GradientReduction& gradient_reduction,
              const Reader& reader,
              const ClusterProfile& cluster,
              const CostOptions& options)
      : network_(network),
        reader_(reader),
        costs_(network, kernels, gradient_reduction, cluster),
        load_(cluster) {
    cost_.passes = options.passes;
    cost_.loss_s = options.has_loss ? loss_seconds(cluster) : 0;
    cost_.norm_s = network.max_gradient_norm > 0 ? loss_seconds(cluster) : 0;
  }

  void add(const GroupGeometry& group, const Owners& owners) {
    GroupCost group_cost = costs_.inner(group);
    for (const auto& [map, required] : group.required) {
      if (!reader_.is_sent(map)) {
        continue;
      }
      const ExchangeSeconds seconds =
          exchange_seconds(OverlapIndex(owners[map_slot(map)]), required, load_);
      group_cost.forward_exchange_s += seconds.forward_s;
      const bool comes_back = map != kImage && network_.takes_gradient(map);
      group_cost.backward_exchange_s += comes_back ? seconds.backward_s : 0;
    }
    if (network_.max_gradient_norm > 0) {
      cost_.norm_s += kNormOfUpdate * group_cost.update_s;
    }
    cost_.groups.push_back(std::move(group_cost));
  }

  [[nodiscard]] const StepCost& cost() const { return cost_; }

 private:
  const Network& network_;
  Reader reader_;
  GroupCosts costs_;
  TransferLoad load_;
  StepCost cost_;
};

}  // namespace

StepCost step_cost(const Network& network,
                   const Plan& plan,
                   const ClusterProfile& cluster,
                   const CostOptions& options) {
  StepCostSum sum(network, plan.kernels, plan.gradient_reduction, plan.reader, cluster, options);
  Owners owners;
  for (int map = kImage; map < network.size(); ++map) {
    owners.push_back(owned_regions(plan, map));
  }
  for (const GroupGeometry& group : plan.groups) {
    sum.add(group, owners);
  }
  return sum.cost();
}

StepCost step_cost(const Network& network,
                   const Partition& partition,
                   Index batch,
                   const ClusterProfile& cluster,
                   const CostOptions& options) {
  std::vector<ConvolutionKernels> kernels = partition.kernels;
  kernels.resize(network.layers.size());
  StepCostSum sum(
      network, kernels, partition.gradient_reduction, partition.reader, cluster, options);
  Owners owners(network.layers.size() + 1, std::vector<Region>(cluster.devices.size()));
  if (const auto reader = partition.reader.single_rank()) {
    owners[map_slot(kImage)][static_cast<std::size_t>(*reader)] = whole_map(network, kImage, batch);
  }
  for (const Group& group : partition.groups) {
    const GroupGeometry geometry = group_geometry(network, group, cluster.size(), batch);
    for (int map = group.first; map <= group.last; ++map) {
      for (std::size_t rank = 0; rank < cluster.devices.size(); ++rank) {
        owners[map_slot(map)][rank] = geometry.tiles_of(map)[rank].owned;
      }
    }
    sum.add(geometry, owners);
  }
  return sum.cost();
}

}  // namespace tessera::partitioner
