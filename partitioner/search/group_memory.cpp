#include "partitioner/search/group_memory.h"

#include <algorithm>
#include <map>

#include "partitioner/base/layout.h"
#include "partitioner/cost/step_messages.h"
#include "partitioner/network/layer_traits.h"

namespace tessera::partitioner {

namespace {

using RankBytes = std::vector<Index>;
using RankUses = std::vector<MemoryUse>;

// Parameters, their gradients, the optimizer's state and messages of one layer on all ranks.
class ParameterBytes {
 public:
  ParameterBytes(const SearchOptions& options, RankUses& uses)
      : options_(options.memory),
        compression_(options.gradient_reduction.compression),
        replicated_(options.gradient_reduction.optimizer == OptimizerStates::Replicated),
        uses_(uses) {}

  void add(const LayerParameters& layer, bool frozen, const std::vector<Tile>& tiles) {
    frozen_ = frozen;
    add(layer.weight, tiles, true);
    add(layer.bias, tiles, true);
    add(layer.scale, tiles, true);
    add(layer.mean, tiles, false);
    add(layer.variance, tiles, false);
  }

 private:
  void add(const ParameterShape& shape, const std::vector<Tile>& tiles, bool is_learnt) {
    if (shape.channels == 0 || shape.row == 0) {
      return;
    }
    const bool learns = options_.training && is_learnt && !frozen_;
    for (const SharedRun& run : shared_runs(shape, tiles)) {
      Index elements = 0;
      for (const Index share : run.shares) {
        elements += share;
      }
      const auto peers = static_cast<Index>(run.ranks.size()) - 1;
      for (std::size_t i = 0; i < run.ranks.size(); ++i) {
        const Index updated = replicated_ && is_learnt ? elements : run.shares[i];
        const Index averages = options_.trained.averages ? 1 : 0;
        const Index arrays = (learns ? (options_.trained.adam ? 2 : 1) : 0) +
                             (options_.training && !frozen_ ? averages : 0);
        MemoryUse& use = uses_[static_cast<std::size_t>(run.ranks[i])];
        use.weights += options_.scalar_bytes * elements;
        use.gradients += learns ? options_.scalar_bytes * elements : 0;
        use.optimizer += options_.scalar_bytes * arrays * updated;
        use.messages +=
            message_bytes({run.shares[i], shape.row}, elements - run.shares[i], peers, is_learnt);
      }
    }
  }

  // Without what a message carries beside its elements.
  [[nodiscard]] Index message_bytes(const ElementRun& owned,
                                    Index borrowed,
                                    Index peers,
                                    bool is_learnt) const {
    if (!options_.training || frozen_) {
      return 0;
    }
    const Compression compression = is_learnt ? compression_ : Compression::Exact;
    const Index packed = packed_bytes(compression, owned, options_.scalar_bytes);
    const TravellingElements elements{
        peers > 0 ? owned.elements : 0, borrowed, peers > 0 ? packed : 0};
    return peers * packed +
           packed_bytes(compression, {borrowed, owned.row}, options_.scalar_bytes) +
           error_feedback_bytes(compression, elements, options_.scalar_bytes);
  }

  const MemoryOptions& options_;
  Compression compression_;
  bool replicated_;  // the optimizer's state
  RankUses& uses_;
  bool frozen_ = false;  // the layer
};

// What each rank of one group needs.
class GroupBytes {
 public:
  GroupBytes(const Network& network, const GroupGeometry& group, const SearchOptions& options)
      : network_(network),
        group_(group),
        options_(options),
        again_(recomputed_work(network, group)),
        fixed_(static_cast<std::size_t>(group.ranks())),
        held_(fixed_.size()),
        kept_(fixed_.size()),
        recomputed_(fixed_.size()),
        moment_(fixed_.size()),
        peak_(fixed_.size()),
        scratch_(fixed_.size()) {
    ParameterBytes parameters(options_, fixed_);
    for (int layer = group.first; layer <= group.last; ++layer) {
      parameters.add(
          layer_parameters(network, layer), network.layer(layer).frozen, group.tiles_of(layer));
      const bool outlives = group.recompute && last_backward_reader(network, layer) > group.last;
      for (std::size_t rank = 0; rank < fixed_.size(); ++rank) {
        compute(layer, rank, outlives);
      }
    }
    for (const auto& [map, required] : group.required) {
      if (options.memory.training && group.recompute && is_kept_to_run_again(map)) {
        for (std::size_t rank = 0; rank < required.size(); ++rank) {
          kept_[rank] += blocked_volume(required[rank]) * options.memory.scalar_bytes;
        }
      }
    }
    read_pictures();
    for (const OwnerReduction& reduction : group.reductions) {
      for (const Message& message : reduction.messages) {
        const Index packed = cell_bytes(message.payload.cells(), options.memory.scalar_bytes);
        fixed_[static_cast<std::size_t>(message.from)].messages += packed;
        fixed_[static_cast<std::size_t>(message.to)].messages += packed;
      }
    }
  }

  // About what the group adds to any plan, from the forward to the backward pass.
  [[nodiscard]] Index lasting(std::size_t rank) const { return fixed(rank) + kept_[rank]; }
  [[nodiscard]] Index fixed(std::size_t rank) const { return fixed_[rank].total(); }
  [[nodiscard]] Index held(std::size_t rank) const { return held_[rank]; }
  [[nodiscard]] Index for_a_moment(std::size_t rank) const {
    return moment_[rank] + scratch_[rank];
  }
  // No plan with this group needs less.
  [[nodiscard]] Index least(std::size_t rank) const {
    return fixed(rank) + std::max(held_[rank], peak_[rank]) + scratch_[rank];
  }

  // Adds what is there throughout a step, and keeps count of `kept` and `peak` from one group to
  // the next, as MemoryLoad does: what is kept so far, and the most of that and what groups take
  // for a moment.
  void add_to(std::size_t rank, MemoryUse& use, Index& kept, Index& peak) const {
    const MemoryUse& fixed = fixed_[rank];
    use.weights += fixed.weights;
    use.gradients += fixed.gradients;
    use.optimizer += fixed.optimizer;
    use.messages += fixed.messages;
    use.pictures += fixed.pictures;
    use.decoding = std::max(use.decoding, fixed.decoding);
    use.workspace = std::max(use.workspace, scratch_[rank]);
    kept += kept_[rank];
    peak = std::max(peak, kept + moment_[rank]);
  }

 private:
  // By all ranks for themselves; what a single reader holds is the same for all partitions.
  void read_pictures() {
    const auto image = group_.required.find(kImage);
    if (image == group_.required.end() || !options_.reader.is_every_rank()) {
      return;
    }
    for (std::size_t rank = 0; rank < fixed_.size(); ++rank) {
      const Index pixels = image->second[rank].volume();
      fixed_[rank].pictures +=
          options_.memory.picture_batches * pixels * options_.memory.scalar_bytes;
      fixed_[rank].decoding += pixels > 0 ? options_.memory.decoding_bytes : 0;
    }
  }

  // `outlives`: later groups' backward passes read the layer's map.
  void compute(int layer, std::size_t rank, bool outlives) {
    const Tile& tile = group_.tiles_of(layer)[rank];
    if (options_.workspace.per_layer) {
      const auto at = static_cast<std::size_t>(layer);
      const ConvolutionKernels kernels =
          at < options_.kernels.size() ? options_.kernels[at] : ConvolutionKernels{};
      scratch_[rank] = std::max(scratch_[rank], options_.workspace.per_layer(layer, kernels, tile));
    }
    if (options_.memory.training) {
      hold(layer, rank, blocked_volume(tile.computed), outlives);
      if (network_.layer(layer).has_backward) {
        pass_back(layer, rank);
      }
    }
  }

  // Pre-activations and argmax stay from the layer's forward pass to its backward pass; so do maps
  // that cannot be had from pre-activations again, but for those that a pool takes at once. In a
  // recomputed group most of this is there for its backward pass only.
  void hold(int layer, std::size_t rank, Index cells, bool outlives) {
    const LayerSpec& spec = network_.layer(layer);
    const Operation& operation = spec.operation;
    const RecomputedLayer& again = again_[static_cast<std::size_t>(layer - group_.first)];
    const Index map = cells * options_.memory.scalar_bytes;
    const Index pre_activations = spec.has_backward && keeps_pre_activations(operation) ? map : 0;
    const Index argmax = spec.has_backward && layer_traits(operation).keeps_argmax ? cells : 0;
    const bool comes_back = takes_batch_statistics(spec);  // from pre-activations
    const bool pooled =
        layer < group_.last && layer_traits(network_.layer(layer + 1).operation).keeps_argmax;
    held_[rank] += pre_activations + argmax;
    if (group_.recompute) {
      (again.output ? recomputed_ : kept_)[rank] += argmax;
      kept_[rank] += outlives ? map : 0;
      recomputed_[rank] += pre_activations + (again.output && !comes_back && !pooled ? map : 0);
      const Index gradient = layer == group_.last ? map : 0;  // is there when all has run again
      moment_[rank] = std::max(moment_[rank], recomputed_[rank] + gradient);
      return;
    }
    const bool stays = spec.has_backward || last_backward_reader(network_, layer) != kNoLayer;
    kept_[rank] += pre_activations + argmax + (comes_back || pooled || !stays ? 0 : map);
  }

  // Whether no backward pass reads the map, but a layer that runs again does.
  [[nodiscard]] bool is_kept_to_run_again(int map) const {
    if (map == kImage || last_backward_reader(network_, map) >= group_.first) {
      return false;
    }
    const std::vector<int> readers = readers_of(network_, map);
    return std::any_of(readers.begin(), readers.end(), [this](int layer) {
      return layer >= group_.first && layer <= group_.last &&
             again_[static_cast<std::size_t>(layer - group_.first)].runs;
    });
  }

  // Gradients of the inputs, while what is kept of this layer and of those before it still is. A
  // pool may write to the gradient of a map that never stands in memory.
  void pass_back(int layer, std::size_t rank) {
    const LayerSpec& spec = network_.layer(layer);
    if (layer_traits(spec.operation).keeps_argmax) {
      return;
    }
    Index live = 0;
    Index restored = 0;  // normalised maps, from their pre-activations
    for (std::size_t input = 0; input < spec.inputs.size(); ++input) {
      const int map = spec.inputs[input];
      const bool again = std::count(spec.inputs.begin(), spec.inputs.end(), map) > 1;
      if (map != kImage && network_.takes_gradient(map) && !again) {
        const Region& computed = group_.tiles_of(layer)[rank].computed;
        const Index bytes = options_.memory.scalar_bytes *
                            blocked_volume(required_input(network_, layer, input, computed));
        live += bytes;
        restored += takes_batch_statistics(network_.layer(map)) ? bytes : 0;
      }
    }
    moment_[rank] = std::max(moment_[rank], recomputed_[rank] + live + restored);
    peak_[rank] = std::max(peak_[rank], held_[rank] + live);
  }

  const Network& network_;
  const GroupGeometry& group_;
  const SearchOptions& options_;
  std::vector<RecomputedLayer> again_;
  RankUses fixed_;
  RankBytes held_;        // pre-activations and argmax, while the group's backward pass begins
  RankBytes kept_;        // from forward to backward pass
  RankBytes recomputed_;  // for the backward pass alone
  RankBytes moment_;      // beside what is kept, in the backward pass
  RankBytes peak_;
  RankBytes scratch_;
};

// What a rank that owns cells of a map needs to read others: buffers of what it lacks, and about as
// much sent as received.
Index exchange_bytes(const Region& owned,
                     const Region& required,
                     bool comes_from_pre_activations,
                     Index scalar_bytes) {
  if (required == owned) {
    return 0;
  }
  const Index lacking = required.volume() - intersect(owned, required).volume();
  const Index kept = comes_from_pre_activations ? blocked_volume(required) : lacking;
  return (kept + 2 * lacking) * scalar_bytes;
}

double share(Index bytes, Index limit) {
  return static_cast<double>(bytes) / static_cast<double>(limit);
}

}  // namespace

bool may_fit(const Network& network,
             const GroupGeometry& group,
             const SearchOptions& options,
             const std::vector<Index>& limits) {
  const GroupBytes bytes(network, group, options);
  for (std::size_t rank = 0; rank < limits.size(); ++rank) {
    if (bytes.least(rank) > limits[rank]) {
      return false;
    }
  }
  return true;
}

GroupLoad group_load(const Network& network,
                     const GroupGeometry& group,
                     const SearchOptions& options,
                     const std::vector<Index>& limits) {
  const GroupBytes bytes(network, group, options);
  GroupLoad load;
  for (std::size_t rank = 0; rank < limits.size(); ++rank) {
    load.lasting = std::max(load.lasting, share(bytes.lasting(rank), limits[rank]));
    load.fixed = std::max(load.fixed, share(bytes.fixed(rank), limits[rank]));
    load.for_a_moment = std::max(load.for_a_moment, share(bytes.for_a_moment(rank), limits[rank]));
    load.least_fixed.push_back(bytes.fixed(rank));
    load.least_kept.push_back(group.recompute ? 0 : bytes.held(rank));
  }
  return load;
}

double exchange_load(const std::vector<Region>& owned,
                     const std::vector<Region>& required,
                     bool comes_from_pre_activations,
                     const MemoryOptions& options,
                     const std::vector<Index>& limits) {
  double load = 0;
  for (std::size_t rank = 0; rank < limits.size(); ++rank) {
    const Index bytes = exchange_bytes(
        owned[rank], required[rank], comes_from_pre_activations, options.scalar_bytes);
    load = std::max(load, share(bytes, limits[rank]));
  }
  return load;
}

std::vector<MemoryUse> estimated_memory_of_ranks(const Network& network,
                                                 const Partition& partition,
                                                 const SearchOptions& options) {
  const auto ranks = static_cast<std::size_t>(partition.ranks);
  std::vector<MemoryUse> uses(ranks);
  std::vector<Index> kept(ranks);
  std::vector<Index> peaks(ranks);
  std::map<int, std::vector<Tile>> owned;  // of maps that were made
  for (const Group& group : partition.groups) {
    const GroupGeometry geometry = group_geometry(network, group, partition.ranks, options.batch);
    const GroupBytes bytes(network, geometry, options);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      for (const auto& [map, required] : geometry.required) {
        if (map != kImage && options.reader.is_sent(map)) {
          kept[rank] += exchange_bytes(owned[map][rank].owned,
                                       required[rank],
                                       takes_batch_statistics(network.layer(map)),
                                       options.memory.scalar_bytes);
        }
      }
      bytes.add_to(rank, uses[rank], kept[rank], peaks[rank]);
      uses[rank].activations = peaks[rank];
    }
    for (int map = group.first; map <= group.last; ++map) {
      owned[map] = geometry.tiles_of(map);
    }
  }
  if (const auto reader = options.reader.single_rank()) {
    MemoryUse& use = uses[static_cast<std::size_t>(*reader)];
    use.pictures = options.memory.picture_batches * options.memory.scalar_bytes *
                   whole_map(network, kImage, options.batch).volume();
    use.decoding = options.memory.decoding_bytes;
  }
  return uses;
}

}  // namespace tessera::partitioner
