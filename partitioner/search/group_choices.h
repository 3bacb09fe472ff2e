// For a search: every way to compute a run of layers, with what it costs in itself and what others
// have to know of it. Where a network repeats itself, so do choices.

#pragma once

#include <compare>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "partitioner/cost/cost_model.h"
#include "partitioner/search/region_table.h"
#include "partitioner/search/search.h"
#include "partitioner/search/search_space.h"

namespace tessera::partitioner {

// The regions of a map that ranks read, or own.
struct MapRegions {
  int map = kImage;
  int regions = -1;
  friend bool operator==(const MapRegions&, const MapRegions&) = default;
};

// A choice without its figures: the arrangement of the list, and whether cut on tiles of
// Winograd's.
struct ChoiceName {
  int last = 0;  // layer
  int arrangement = 0;
  bool on_tiles = false;
  friend auto operator<=>(const ChoiceName&, const ChoiceName&) = default;
};
using Shortlist = std::vector<std::set<ChoiceName>>;  // by first layer

// Bytes of each rank that any plan takes, see GroupLoad; they add up from group to group.
struct LeastBytes {
  std::vector<Index> fixed = {};
  std::vector<Index> kept = {};

  void add(const LeastBytes& other);
};

struct GroupChoice {
  ChoiceName name;
  Group group;
  double seconds = 0;      // of a step, without exchanges of maps
  double reduction_s = 0;  // of it for gradients and values on the wire, which others may hide
  double computing_j = 0;  // of a step, beyond idling; 0 where powers are unknown
  double load = 0;         // its permanent memory as a share of the fullest device's, approximately
  double fixed = 0;        // of it what is there throughout a step
  double for_a_moment = 0;        // ... and beside all that in its backward pass
  LeastBytes least;               // that any plan with it takes; of few devices
  std::vector<MapRegions> reads;  // of earlier groups
  std::vector<MapRegions> makes;  // that later groups read

  // Whether other groups cannot distinguish them.
  [[nodiscard]] bool passes_for(const GroupChoice& other) const {
    return group.last == other.group.last && reads == other.reads && makes == other.makes;
  }
};

// Of which ranks choices are costed, and which choices there are.
struct ChoiceScope {
  // Costs are those of these ranks alone, in rising order, so less than the truth; regions are
  // theirs, in their order. Empty: of all ranks, exactly.
  std::vector<int> looked_at = {};
  std::optional<Shortlist> shortlist = {};  // all choices that there are; nothing: no limit
};

class GroupChoices {
 public:
  // The first four must outlive it.
  GroupChoices(const Network& network,
               const ClusterProfile& cluster,
               const SearchOptions& options,
               const ChoiceScope& scope,
               std::vector<Index> limits);
  GroupChoices(const GroupChoices&) = delete;
  GroupChoices& operator=(const GroupChoices&) = delete;

  // With `limits`, bytes of each rank, loads are counted, and choices that alone exceed a limit are
  // left out. Of the groups that begin with layer `first`, by last layer:
  [[nodiscard]] std::vector<GroupChoice> from(int first);

  [[nodiscard]] const RegionTable& regions() const { return regions_; }
  [[nodiscard]] RegionTable& regions() { return regions_; }
  [[nodiscard]] int last_reader(int map) const { return last_reader_[map_slot(map)]; }
  [[nodiscard]] const std::vector<ConvolutionKernels>& kernels() const { return kernels_; }

 private:
  [[nodiscard]] bool alike(int first, int other) const;
  [[nodiscard]] std::vector<GroupChoice> make(int first);
  [[nodiscard]] bool is_wanted(int first, const ChoiceName& name) const;
  void add(const Group& group, const ChoiceName& name, std::vector<GroupChoice>& choices);
  void add_variants(const Group& group, std::vector<GroupChoice>& choices);
  [[nodiscard]] GroupChoice least_choice(const Group& group, const std::vector<MapCut>& cuts);
  void add_variants(const Group& group, GroupGeometry geometry, std::vector<GroupChoice>& choices);
  // Without its seconds. The geometry is that of `ranks`, or of all where these are empty.
  [[nodiscard]] GroupChoice choice_of(const Group& group,
                                      const GroupGeometry& geometry,
                                      const std::vector<int>& ranks);
  [[nodiscard]] int number_of(const Group& group,
                              const RegionsOfRanks& regions,
                              const std::vector<int>& ranks);
  template <class Seconds>
  [[nodiscard]] double joules(const GroupCost& cost, Seconds seconds) const;
  void count_memory(const GroupGeometry& geometry, GroupChoice& choice) const;
  [[nodiscard]] bool counts_memory() const { return !limits_.empty(); }

  const Network& network_;
  const ClusterProfile& cluster_;
  const SearchOptions& options_;
  const ChoiceScope& scope_;
  std::vector<Index> limits_;                // [rank]; empty: memory is not counted
  std::vector<ConvolutionKernels> kernels_;  // of every layer
  GroupCosts costs_;
  std::vector<Arrangement> arrangements_;
  std::vector<double> computing_w_;  // [rank]: beyond idling
  IndexedVector<MapSlot, int> last_reader_;
  std::vector<int> last_backward_reader_;  // by layer
  RegionTable regions_;
  std::map<int, std::vector<GroupChoice>> made_;  // by first layer
};

}  // namespace tessera::partitioner
