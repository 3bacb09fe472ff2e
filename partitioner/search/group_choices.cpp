#include "partitioner/search/group_choices.h"

#include <algorithm>

#include "partitioner/plan/recomputation.h"
#include "partitioner/search/group_memory.h"

namespace tessera::partitioner {

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

GroupChoice shifted(GroupChoice choice, int layers) {
  choice.group.first += layers;
  choice.group.last += layers;
  for (int& layer : choice.group.reduce_to_owner) {
    layer += layers;
  }
  for (auto* maps : {&choice.reads, &choice.makes}) {
    for (MapRegions& regions : *maps) {
      regions.map += regions.map == kImage ? 0 : layers;
    }
  }
  return choice;
}

// Whether backward passes do work for cells that another rank owns.
bool has_redundant_backward(const GroupGeometry& geometry) {
  for (const auto& tiles : geometry.tiles) {
    for (const Tile& tile : tiles) {
      if (tile.backward != tile.owned) {
        return true;
      }
    }
  }
  return false;
}

// Watts of computing beyond idling; 0 where they are unknown.
std::vector<double> computing_watts(const ClusterProfile& cluster) {
  std::vector<double> watts;
  for (const DeviceProfile& device : cluster.devices) {
    const std::optional<PowerProfile> power = known_power(device);
    watts.push_back(power ? power->busy_w.back() - power->idle_w : 0);
  }
  return watts;
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
                           std::vector<Index> limits)
    : network_(network),
      cluster_(cluster),
      options_(options),
      limits_(std::move(limits)),
      kernels_(options.kernels),
      costs_(network, kernels_, options.gradient_reduction, cluster),
      arrangements_(arrangements(device_speeds(network, options.kernels, cluster), options.batch)),
      computing_w_(computing_watts(cluster)),
      last_reader_(network.layers.size() + 1, -1) {
  kernels_.resize(network.layers.size());
  for (int layer = 0; layer < network.size(); ++layer) {
    last_backward_reader_.push_back(partitioner::last_backward_reader(network, layer));
    for (const int map : network.layer(layer).inputs) {
      last_reader_[map_slot(map)] = layer;
    }
  }
}

std::vector<GroupChoice> GroupChoices::from(int first) {
  for (const auto& [other, choices] : made_) {
    if (alike(first, other)) {
      std::vector<GroupChoice> same;
      same.reserve(choices.size());
      for (const GroupChoice& choice : choices) {
        same.push_back(shifted(choice, first - other));
      }
      return same;
    }
  }
  return made_[first] = make(first);
}

// Whether all choices that begin at either layer are the same but for the numbers of layers.
bool GroupChoices::alike(int first, int other) const {
  const auto window = [this](int from) {
    return std::min(network_.size() - from, options_.longest_group);
  };
  if (window(first) != window(other)) {
    return false;
  }
  const auto relative = [](int map, int from) { return map == kImage ? kImage : map - from; };
  for (int i = 0; i < window(first); ++i) {
    const LayerSpec& a = network_.layer(first + i);
    const LayerSpec& b = network_.layer(other + i);
    const auto at = [i](int from) {
      return static_cast<std::size_t>(from) + static_cast<std::size_t>(i);
    };
    const auto kernel = [&](int from) { return kernels_[at(from)]; };
    const auto read_for = [&](int from) {
      const int backward = last_backward_reader_[at(from)];
      return std::pair(std::min(last_reader(from + i) - from, options_.longest_group),
                       std::clamp(backward - from, 0, options_.longest_group));
    };
    if (a.operation != b.operation || a.frozen != b.frozen || a.has_backward != b.has_backward ||
        a.inputs.size() != b.inputs.size() ||
        network_.shape(first + i) != network_.shape(other + i) || kernel(first) != kernel(other) ||
        read_for(first) != read_for(other)) {
      return false;
    }
    for (std::size_t input = 0; input < a.inputs.size(); ++input) {
      const int map_a = a.inputs[input];
      const int map_b = b.inputs[input];
      if ((map_a == kImage) != (map_b == kImage) ||
          relative(map_a, first) != relative(map_b, other) ||
          network_.takes_gradient(map_a) != network_.takes_gradient(map_b) ||
          network_.shape(map_a) != network_.shape(map_b)) {
        return false;
      }
    }
  }
  return true;
}

std::vector<GroupChoice> GroupChoices::make(int first) {
  std::vector<GroupChoice> choices;
  const int end = std::min(network_.size(), first + options_.longest_group);
  for (int last = first; last < end; ++last) {
    for (const Arrangement& arrangement : arrangements_) {
      const auto group = arranged_group(network_, first, last, arrangement, options_.batch);
      if (group) {
        add_variants(*group, choices);
        if (const auto on_tiles = cut_on_tiles(network_, kernels_, arrangement, *group)) {
          add_variants(*on_tiles, choices);
        }
      }
    }
  }
  return choices;
}

// With reductions to owners in the backward pass and without. They take messages and memory for
// them, so it is a choice only where it saves time.
void GroupChoices::add_variants(const Group& group, std::vector<GroupChoice>& choices) {
  GroupGeometry geometry = group_geometry(network_, group, cluster_.size(), options_.batch);
  if (counts_memory() && !may_fit(network_, geometry, options_, limits_)) {
    return;
  }
  const bool reduces = has_redundant_backward(geometry);
  add_variants(group, std::move(geometry), choices);
  if (!reduces) {
    return;
  }
  Group reducing = group;
  for (int layer = group.first; layer < group.last; ++layer) {
    reducing.reduce_to_owner.push_back(layer);
  }
  geometry = group_geometry(network_, reducing, cluster_.size(), options_.batch);
  std::vector<GroupChoice> found;
  add_variants(reducing, std::move(geometry), found);
  if (counts_memory()) {
    choices.insert(choices.end(), found.begin(), found.end());
  } else if (found.front().seconds < choices.back().seconds) {
    choices.back() = std::move(found.front());
  }
}

// Kept, and recomputed. Recomputing only takes time, so it is a choice only where memory counts.
void GroupChoices::add_variants(const Group& group,
                                GroupGeometry geometry,
                                std::vector<GroupChoice>& choices) {
  geometry.recompute = counts_memory() && options_.memory.training;
  GroupCost cost = costs_.inner(geometry);
  const double recompute_s = std::exchange(cost.recompute_s, 0);
  geometry.recompute = false;
  choices.push_back(choice_of(group, geometry));
  choices.back().seconds = cost.total(options_.cost.passes);
  choices.back().reduction_s = cost.gradient_reduction_s + cost.parameter_all_gather_s;
  const double recompute_j = joules(cost, [](const RankSeconds& rank) { return rank.recompute_s; });
  choices.back().computing_j =
      joules(cost, [](const RankSeconds& rank) { return rank.total(); }) - recompute_j;
  // What runs again may take no time to speak of, and saves memory all the same.
  const bool recomputes = counts_memory() && options_.memory.training;
  if (!recomputes || !runs_again(network_, {group.first, group.last})) {
    return;
  }
  GroupChoice recomputed = choices.back();
  geometry.recompute = recomputed.group.recompute = true;
  recomputed.seconds += static_cast<double>(options_.cost.passes) * recompute_s;
  recomputed.computing_j += recompute_j;
  count_memory(geometry, recomputed);
  choices.push_back(std::move(recomputed));
}

// The energy of a step, for the seconds of a rank that are asked for.
template <class Seconds>
double GroupChoices::joules(const GroupCost& cost, Seconds seconds) const {
  double sum = 0;
  for (std::size_t rank = 0; rank < cost.ranks.size(); ++rank) {
    sum += computing_w_[rank] * seconds(cost.ranks[rank]);
  }
  return static_cast<double>(options_.cost.passes) * sum;
}

GroupChoice GroupChoices::choice_of(const Group& group, const GroupGeometry& geometry) {
  GroupChoice choice;
  choice.group = group;
  for (const auto& [map, required] : geometry.required) {
    choice.reads.push_back({map, regions_.number(required)});
  }
  for (int map = group.first; map <= group.last; ++map) {
    if (last_reader(map) > group.last) {
      RegionsOfRanks owned;
      for (const Tile& tile : geometry.tiles_of(map)) {
        owned.push_back(tile.owned);
      }
      choice.makes.push_back({map, regions_.number(owned)});
    }
  }
  count_memory(geometry, choice);
  return choice;
}

void GroupChoices::count_memory(const GroupGeometry& geometry, GroupChoice& choice) const {
  if (counts_memory()) {
    const GroupLoad load = group_load(network_, geometry, options_, limits_);
    choice.load = load.lasting;
    choice.fixed = load.fixed;
    choice.for_a_moment = load.for_a_moment;
  }
}

}  // namespace tessera::partitioner
