#include "partitioner/group_choices.h"

#include <algorithm>
#include <array>

#include "partitioner/layer_memory.h"
#include "partitioner/layout.h"
#include "partitioner/step_messages.h"

namespace partitioner {

namespace {

std::vector<Index> numbers_of(const RegionsOfRanks& regions) {
  std::vector<Index> numbers;
  numbers.reserve(regions.size() * 8);
  for (const Region& region : regions) {
    if (region.empty()) {
      numbers.push_back(-1);
      continue;
    }
    for (const Range& range : {region.images, region.channels, region.rows, region.cols}) {
      numbers.push_back(range.begin);
      numbers.push_back(range.end);
    }
  }
  return numbers;
}

// Parameters, their gradients, the optimizer's state and messages of one layer on all ranks.
class ParameterBytes {
 public:
  ParameterBytes(const MemoryOptions& options, std::vector<Index>& bytes)
      : options_(options), bytes_(bytes) {}

  void add(const LayerParameters& layer, const std::vector<Tile>& tiles) {
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
    const bool learns = options_.training && is_learnt;
    for (const SharedRun& run : shared_runs(shape, tiles)) {
      Index elements = 0;
      for (const Index share : run.shares) {
        elements += share;
      }
      const auto peers = static_cast<Index>(run.ranks.size()) - 1;
      for (std::size_t i = 0; i < run.ranks.size(); ++i) {
        const Index packed = run.shares[i] * peers + elements - run.shares[i];
        const Index states = learns ? (options_.adam ? 2 : 1) * run.shares[i] : 0;
        bytes_[static_cast<std::size_t>(run.ranks[i])] +=
            options_.scalar_bytes * (elements * (learns ? 2 : 1) + states + packed);
      }
    }
  }

  const MemoryOptions& options_;
  std::vector<Index>& bytes_;
};

Index arena_scalars(const Region& region) {
  constexpr Index kAlignment = 16;  // as gradient_arena() aligns
  return (blocked_volume(region) + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

int RegionTable::number(const RegionsOfRanks& regions) {
  const auto [found, is_new] =
      numbers_.try_emplace(numbers_of(regions), static_cast<int>(regions_.size()));
  if (is_new) {
    regions_.push_back(std::make_unique<RegionsOfRanks>(regions));
  }
  return found->second;
}

GroupChoices::GroupChoices(const Network& network,
                           const ClusterProfile& cluster,
                           const SearchOptions& options,
                           bool counts_memory)
    : network_(network),
      cluster_(cluster),
      options_(options),
      counts_memory_(counts_memory),
      kernels_(options.kernels),
      arrangements_(arrangements(device_speeds(network, options.kernels, cluster), options.batch)),
      last_reader_(network.layers.size() + 1, -1) {
  kernels_.resize(network.layers.size());
  for (int layer = 0; layer < network.size(); ++layer) {
    for (const int map : network.layer(layer).inputs) {
      last_reader_[map_slot(map)] = layer;
    }
  }
}

std::vector<GroupChoice> GroupChoices::from(int first) {
  std::vector<GroupChoice> choices;
  const int end = std::min(network_.size(), first + options_.longest_group);
  for (int last = first; last < end; ++last) {
    for (const Arrangement& arrangement : arrangements_) {
      const auto group = arranged_group(network_, first, last, arrangement, options_.batch);
      if (group) {
        add_variants(*group, choices);
      }
    }
  }
  return choices;
}

// With backward collapse points and without. Collapsing takes messages and memory for them, so it
// is a choice only where it saves time.
void GroupChoices::add_variants(const Group& group, std::vector<GroupChoice>& choices) {
  const GroupGeometry geometry = group_geometry(network_, group, cluster_.size(), options_.batch);
  choices.push_back(choice_of(group, geometry));
  bool redundant = false;
  for (int layer = group.first; layer < group.last; ++layer) {
    for (const Tile& tile : geometry.tiles_of(layer)) {
      redundant = redundant || tile.backward != tile.owned;
    }
  }
  if (!redundant) {
    return;
  }
  Group collapsing = group;
  for (int layer = group.first; layer < group.last; ++layer) {
    collapsing.collapse.push_back(layer);
  }
  GroupChoice choice =
      choice_of(collapsing, group_geometry(network_, collapsing, cluster_.size(), options_.batch));
  if (counts_memory_) {
    choices.push_back(std::move(choice));
  } else if (choice.seconds < choices.back().seconds) {
    choices.back() = std::move(choice);
  }
}

GroupChoice GroupChoices::choice_of(const Group& group, const GroupGeometry& geometry) {
  GroupChoice choice;
  choice.group = group;
  choice.seconds = inner_cost(network_, geometry, kernels_, cluster_).total(options_.cost.passes);
  for (const auto& [map, required] : geometry.required) {
    const int buffer = counts_memory_ ? regions_.number(reads_with_border(geometry, map)) : -1;
    choice.reads.push_back({map, regions_.number(required), buffer});
  }
  for (int map = group.first; map <= group.last; ++map) {
    if (last_reader(map) > group.last) {
      RegionsOfRanks owned;
      for (const Tile& tile : geometry.tiles_of(map)) {
        owned.push_back(tile.owned);
      }
      const int buffer = counts_memory_ ? regions_.number(written(geometry, map)) : -1;
      choice.makes.push_back({map, regions_.number(owned), buffer});
    }
  }
  if (group.first == 0 && options_.reader == kEveryRank) {
    choice.image_owned =
        regions_.number(owned_image(network_, group, cluster_.size(), options_.batch));
  }
  if (counts_memory_) {
    choice.bytes = bytes_of(geometry);
  }
  return choice;
}

// What the group's layers read of `map`, cells outside it included.
RegionsOfRanks GroupChoices::reads_with_border(const GroupGeometry& geometry, int map) const {
  RegionsOfRanks regions(static_cast<std::size_t>(geometry.ranks()));
  for (int layer = std::max(map + 1, geometry.first); layer <= geometry.last; ++layer) {
    const auto& inputs = network_.layer(layer).inputs;
    for (std::size_t input = 0; input < inputs.size(); ++input) {
      for (std::size_t rank = 0; rank < regions.size() && inputs[input] == map; ++rank) {
        const Region& computed = geometry.tiles_of(layer)[rank].computed;
        regions[rank] = hull(regions[rank], required_input(network_, layer, input, computed));
      }
    }
  }
  return regions;
}

RegionsOfRanks GroupChoices::written(const GroupGeometry& geometry, int map) const {
  RegionsOfRanks regions = reads_with_border(geometry, map);
  for (std::size_t rank = 0; rank < regions.size(); ++rank) {
    regions[rank] = hull(geometry.tiles_of(map)[rank].computed, regions[rank]);
  }
  return regions;
}

RankBytes GroupChoices::bytes_of(const GroupGeometry& geometry) const {
  const auto ranks = static_cast<std::size_t>(geometry.ranks());
  const MemoryOptions& memory = options_.memory;
  RankBytes bytes{std::vector<Index>(ranks), std::vector<Index>(ranks)};
  ParameterBytes parameters(memory, bytes.additive);
  for (int layer = geometry.first; layer <= geometry.last; ++layer) {
    const auto& tiles = geometry.tiles_of(layer);
    const LayerSpec& spec = network_.layer(layer);
    parameters.add(layer_parameters(network_, layer), tiles);
    if (normalizes(spec.operation)) {
      const auto receive = [&bytes](const Parcel& parcel) {
        bytes.additive[static_cast<std::size_t>(parcel.to)] += static_cast<Index>(parcel.bytes);
      };
      for_each_statistics(tiles, &Tile::owned, kForwardStatistics, receive);
      for_each_statistics(tiles, &Tile::backward, kBackwardStatistics, receive);
    }
    std::vector<RegionsOfRanks> gradients{written(geometry, layer)};
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const Index kept = keeps_sums(spec.operation) ? blocked_volume(tiles[rank].computed) : 0;
      bytes.additive[rank] += memory.scalar_bytes * (blocked_volume(gradients[0][rank]) + kept);
    }
    std::vector<int> inputs = spec.inputs;
    std::sort(inputs.begin(), inputs.end());
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    for (const int map : inputs) {
      if (map != kImage || memory.image_gradient) {
        gradients.push_back(map >= geometry.first ? written(geometry, map)
                                                  : reads_with_border(geometry, map));
      }
    }
    for (std::size_t rank = 0; rank < ranks && memory.training; ++rank) {
      Index live = 0;
      for (const RegionsOfRanks& of : gradients) {
        live += memory.scalar_bytes * arena_scalars(of[rank]);
      }
      bytes.peak[rank] = std::max(bytes.peak[rank], live);
    }
  }
  for (const Exchange& collapse : geometry.collapses) {
    for (const Message& message : collapse.messages) {
      const Index packed = message.region.volume() * memory.scalar_bytes;
      bytes.additive[static_cast<std::size_t>(message.from)] += packed;
      bytes.additive[static_cast<std::size_t>(message.to)] += packed;
    }
  }
  return bytes;
}

}  // namespace partitioner
