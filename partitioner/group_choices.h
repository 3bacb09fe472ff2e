// For a search: every way to compute a run of layers, with what it costs in itself and what others
// have to know of it. Regions of all ranks are kept once and numbered: two choices with the same
// regions are alike to whoever reads or writes them.

#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "partitioner/cost_model.h"
#include "partitioner/memory.h"
#include "partitioner/search.h"
#include "partitioner/search_space.h"

namespace partitioner {

using RegionsOfRanks = std::vector<Region>;

class RegionTable {
 public:
  [[nodiscard]] int number(const RegionsOfRanks& regions);
  [[nodiscard]] const RegionsOfRanks& at(int number) const {
    return *regions_[static_cast<std::size_t>(number)];
  }

 private:
  std::map<std::vector<Index>, int> numbers_;
  std::vector<std::unique_ptr<RegionsOfRanks>> regions_;
};

// Bytes of each rank. Additive ones add up over groups; of peaks the largest counts.
struct RankBytes {
  std::vector<Index> additive;
  std::vector<Index> peak;
};

struct MapRegions {
  int map = kImage;
  int required =
      -1;  // what groups read, inside the map; of a map that the group makes, what is owned
  int buffer = -1;  // the border included; of a map that the group makes, what it writes
};

struct GroupChoice {
  Group group;
  double seconds = 0;             // of a step, exchanges of maps apart
  std::vector<MapRegions> reads;  // of earlier groups
  std::vector<MapRegions> makes;  // that later groups read
  int image_owned = -1;           // of a first group whose ranks read their own pictures
  RankBytes bytes;                // only where memory is limited
};

class GroupChoices {
 public:
  GroupChoices(const Network& network,
               const ClusterProfile& cluster,
               const SearchOptions& options,
               bool counts_memory);

  // Of the groups that begin with layer `first`, by last layer.
  [[nodiscard]] std::vector<GroupChoice> from(int first);

  [[nodiscard]] const RegionTable& regions() const { return regions_; }
  [[nodiscard]] RegionTable& regions() { return regions_; }
  [[nodiscard]] int last_reader(int map) const { return last_reader_[map_slot(map)]; }
  [[nodiscard]] const std::vector<ConvolutionKernels>& kernels() const { return kernels_; }

 private:
  void add_variants(const Group& group, std::vector<GroupChoice>& choices);
  [[nodiscard]] GroupChoice choice_of(const Group& group, const GroupGeometry& geometry);
  [[nodiscard]] RegionsOfRanks reads_with_border(const GroupGeometry& geometry, int map) const;
  [[nodiscard]] RegionsOfRanks written(const GroupGeometry& geometry, int map) const;
  [[nodiscard]] RankBytes bytes_of(const GroupGeometry& geometry) const;

  const Network& network_;
  const ClusterProfile& cluster_;
  const SearchOptions& options_;
  bool counts_memory_;
  std::vector<ConvolutionKernels> kernels_;  // of every layer
  std::vector<Arrangement> arrangements_;
  std::vector<int> last_reader_;  // by map slot
  RegionTable regions_;
};

}  // namespace partitioner
