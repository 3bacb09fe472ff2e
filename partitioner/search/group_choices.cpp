#include "partitioner/search/group_choices.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "partitioner/plan/cut_mapping.h"
#include "partitioner/plan/recomputation.h"
#include "partitioner/search/group_memory.h"

namespace tessera::partitioner {

namespace {

constexpr std::size_t kMostToldApart = 8;  // devices, of whose plans least bytes are kept

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

Group reducing_to_owners(Group group) {
  for (int layer = group.first; layer < group.last; ++layer) {
    group.reduce_to_owner.push_back(layer);
  }
  return group;
}

// The largest part, of those the one nearest to the middle, which has halos on both sides.
Index largest_part(const Boundaries& boundaries) {
  const Index parts = std::ssize(boundaries) - 1;
  const auto extent = [&boundaries](Index part) {
    const auto at = static_cast<std::size_t>(part);
    return boundaries[at + 1] - boundaries[at];
  };
  Index largest = parts / 2;
  for (Index part = 0; part < parts; ++part) {
    const bool is_nearer = std::abs(2 * part - parts) < std::abs(2 * largest - parts);
    if (extent(part) > extent(largest) || (extent(part) == extent(largest) && is_nearer)) {
      largest = part;
    }
  }
  return largest;
}

void sort_unique(std::vector<int>& numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

// The ranks of tiles that are the first in all dimensions but one.
std::vector<int> ranks_at_edges(const Group& group) {
  std::vector<int> ranks;
  Index stride = group.tiles();
  for (const Index parts :
       {group.images.parts, group.channels.parts, group.rows.parts, group.cols.parts}) {
    stride /= group.bands.empty() ? parts : 1;
    for (Index part = 0; part < parts && part * stride < group.tiles(); ++part) {
      ranks.push_back(group.ranks[static_cast<std::size_t>(part * stride)]);
    }
  }
  return ranks;
}

// A rank with as much to do as any, where all are equally fast.
int busy_rank(const Network& network, const Group& group, Index batch) {
  const MapCut cut = cut_of_output(network, group, batch);
  const auto parts = [](const Boundaries& boundaries) { return std::ssize(boundaries) - 1; };
  const Index col = largest_part(cut.cols);
  Index tile = 0;
  if (cut.bands.empty()) {
    tile = largest_part(cut.images) * parts(cut.channels) + largest_part(cut.channels);
    tile = tile * parts(cut.rows) + largest_part(cut.rows);
  } else {
    tile = largest_part(cut.bands.front());
  }
  return group.ranks[static_cast<std::size_t>(tile * parts(cut.cols) + col)];
}

bool has_empty_part(const Boundaries& boundaries) {
  return std::adjacent_find(boundaries.begin(), boundaries.end()) != boundaries.end();
}

// Whether some rank has no cells of some map.
bool has_empty_parts(const std::vector<MapCut>& cuts) {
  return std::any_of(cuts.begin(), cuts.end(), [](const MapCut& cut) {
    return has_empty_part(cut.images) || has_empty_part(cut.channels) || has_empty_part(cut.rows) ||
           has_empty_part(cut.cols) ||
           std::any_of(cut.bands.begin(), cut.bands.end(), has_empty_part);
  });
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

void LeastBytes::add(const LeastBytes& other) {
  for (const auto list : {&LeastBytes::fixed, &LeastBytes::kept}) {
    (this->*list).resize((other.*list).size());
    for (std::size_t rank = 0; rank < (other.*list).size(); ++rank) {
      (this->*list)[rank] += (other.*list)[rank];
    }
  }
}

GroupChoices::GroupChoices(const Network& network,
                           const ClusterProfile& cluster,
                           const SearchOptions& options,
                           const ChoiceScope& scope,
                           std::vector<Index> limits)
    : network_(network),
      cluster_(cluster),
      options_(options),
      scope_(scope),
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
    if (!scope_.shortlist && alike(first, other)) {
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
    for (std::size_t number = 0; number < arrangements_.size(); ++number) {
      const Arrangement& arrangement = arrangements_[number];
      ChoiceName name{last, static_cast<int>(number)};
      ChoiceName name_on_tiles{last, static_cast<int>(number), true};
      if (!is_wanted(first, name) && !is_wanted(first, name_on_tiles)) {
        continue;
      }
      const auto group = arranged_group(network_, first, last, arrangement, options_.batch);
      if (group) {
        add(*group, name, choices);
        if (const auto on_tiles = cut_on_tiles(network_, kernels_, arrangement, *group)) {
          add(*on_tiles, name_on_tiles, choices);
        }
      }
    }
  }
  return choices;
}

bool GroupChoices::is_wanted(int first, const ChoiceName& name) const {
  return !scope_.shortlist || scope_.shortlist->at(static_cast<std::size_t>(first)).contains(name);
}

void GroupChoices::add(const Group& group,
                       const ChoiceName& name,
                       std::vector<GroupChoice>& choices) {
  if (!is_wanted(group.first, name)) {
    return;
  }
  const std::size_t before = choices.size();
  const std::vector<MapCut> cuts = scope_.looked_at.empty()
                                       ? std::vector<MapCut>{}
                                       : cuts_of_group(network_, group, options_.batch);
  if (cuts.empty() || has_empty_parts(cuts)) {
    add_variants(group, choices);
  } else {
    choices.push_back(least_choice(group, cuts));
  }
  for (std::size_t i = before; i < choices.size(); ++i) {
    choices[i].name = name;
  }
}

// The group as it is or with reductions to owners, whichever takes less. Beside the ranks that all
// choices are looked at by, one that has much to do in this group tells what it takes.
GroupChoice GroupChoices::least_choice(const Group& group, const std::vector<MapCut>& cuts) {
  std::vector<int> ranks = scope_.looked_at;
  ranks.push_back(busy_rank(network_, group, options_.batch));
  sort_unique(ranks);
  const GroupGeometry geometry = group_geometry_of(network_, group, ranks, options_.batch);
  GroupCost cost = costs_.least({ranks, geometry, group, cuts});
  if (has_redundant_backward(geometry)) {
    const GroupGeometry reducing =
        group_geometry_of(network_, reducing_to_owners(group), ranks, options_.batch);
    GroupCost reduced = costs_.least({ranks, reducing, group, cuts});
    if (reduced.total(options_.cost.passes) < cost.total(options_.cost.passes)) {
      cost = std::move(reduced);
    }
  }
  ranks = scope_.looked_at;
  const std::vector<int> edges = ranks_at_edges(group);
  ranks.insert(ranks.end(), edges.begin(), edges.end());
  sort_unique(ranks);
  GroupChoice choice =
      choice_of(group, group_geometry_of(network_, group, ranks, options_.batch), ranks);
  choice.seconds = cost.total(options_.cost.passes);
  choice.reduction_s = cost.gradient_reduction_s + cost.parameter_all_gather_s;
  return choice;
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
  const Group reducing = reducing_to_owners(group);
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
  choices.push_back(choice_of(group, geometry, {}));
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

GroupChoice GroupChoices::choice_of(const Group& group,
                                    const GroupGeometry& geometry,
                                    const std::vector<int>& ranks) {
  GroupChoice choice;
  choice.group = group;
  for (const auto& [map, required] : geometry.required) {
    choice.reads.push_back({map, number_of(group, required, ranks)});
  }
  for (int map = group.first; map <= group.last; ++map) {
    if (last_reader(map) > group.last) {
      RegionsOfRanks owned;
      for (const Tile& tile : geometry.tiles_of(map)) {
        owned.push_back(tile.owned);
      }
      choice.makes.push_back({map, number_of(group, owned, ranks)});
    }
  }
  count_memory(geometry, choice);
  return choice;
}

// Only what the ranks that all choices are looked at by have is kept of the regions.
int GroupChoices::number_of(const Group& group,
                            const RegionsOfRanks& regions,
                            const std::vector<int>& ranks) {
  std::optional<RegionProduct> product = product_of(group, regions, ranks);
  if (scope_.looked_at.empty()) {
    return regions_.number(regions, std::move(product));
  }
  RegionsOfRanks kept;
  std::vector<std::array<int, 4>> places;
  for (const int rank : scope_.looked_at) {
    const auto at = static_cast<std::size_t>(
        ranks.empty() ? rank : std::lower_bound(ranks.begin(), ranks.end(), rank) - ranks.begin());
    kept.push_back(regions[at]);
    if (product) {
      places.push_back(product->places[at]);
    }
  }
  if (product) {
    product->places = std::move(places);
  }
  return regions_.number(kept, std::move(product));
}

void GroupChoices::count_memory(const GroupGeometry& geometry, GroupChoice& choice) const {
  if (counts_memory()) {
    const GroupLoad load = group_load(network_, geometry, options_, limits_);
    choice.load = load.lasting;
    choice.fixed = load.fixed;
    choice.for_a_moment = load.for_a_moment;
    if (limits_.size() <= kMostToldApart) {
      choice.least = {load.least_fixed, load.least_kept};
    }
  }
}

}  // namespace tessera::partitioner
