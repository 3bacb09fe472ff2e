// layer_seconds() of the devices of a cluster, worked out once for all tiles and devices that are
// alike: searches ask for the same tiles again and again.

#pragma once

#include <unordered_map>
#include <utility>
#include <vector>

#include "partitioner/cost/compute_model.h"

namespace tessera::partitioner {

class LayerTimes {
 public:
  // `kernels` of all layers. The arguments must outlive it.
  LayerTimes(const Network& network,
             const std::vector<ConvolutionKernels>& kernels,
             const ClusterProfile& cluster);
  LayerTimes(const LayerTimes&) = delete;
  LayerTimes& operator=(const LayerTimes&) = delete;

  // Valid for as long as this is.
  [[nodiscard]] const LayerSeconds& seconds(int layer,
                                            int rank,
                                            const Region& computed,
                                            const Region& backward);

 private:
  struct Tile {
    int kind = 0;
    Region computed;
    Region backward;
    friend bool operator==(const Tile&, const Tile&) = default;
  };
  struct Hash {
    [[nodiscard]] std::size_t operator()(const Tile& tile) const;
  };
  [[nodiscard]] Tile standard(int layer, Tile tile) const;

  const Network* network_;
  const std::vector<ConvolutionKernels>* kernels_;
  const ClusterProfile* cluster_;
  std::vector<int> kinds_;  // [rank]: the first device that computes as fast
  struct Known {
    std::unordered_map<Tile, LayerSeconds, Hash> tiles;
    const std::pair<const Tile, LayerSeconds>* last = nullptr;  // of these that was asked for
  };
  std::vector<Known> known_;  // by layer
};

}  // namespace tessera::partitioner
