// What a search chooses from: for each run of layers, how it may be cut and which devices take
// part.
//
// An arrangement says this for any layers: a number of parts in each dimension and a rank for each
// tile. Devices of unequal speed also have arrangements whose boundaries follow their speeds.

#pragma once

#include <optional>
#include <vector>

#include "partitioner/cost/cluster_profile.h"
#include "partitioner/partition/partition.h"

namespace tessera::partitioner {

struct Arrangement {
  Index images = 1;
  Index channels = 1;
  Index rows = 1;
  Index cols = 1;
  std::vector<int> ranks;         // of tiles, as a Group has them
  std::vector<double> weights;    // of tiles: shares to cut by; empty for equal parts
  std::vector<Index> bands = {};  // parts of images in each part of the rows, instead of `images`
};

// The devices from the fastest to the slowest, by the time of the whole network on each; equal ones
// in their own order.
[[nodiscard]] std::vector<int> by_speed(const std::vector<double>& speeds);

// One over the seconds that each device takes for the whole network, one image.
[[nodiscard]] std::vector<double> device_speeds(const Network& network,
                                                const std::vector<ConvolutionKernels>& kernels,
                                                const ClusterProfile& cluster);

// Ways to divide the work among the fastest 1, 2, 3, ... devices: grids of rows and columns,
// images, output channels, and their products, but no channels with two others; two bands of
// images, with columns or without, where the batch can be divided equally in each. Up to eight
// devices every number of them; with more, powers of two and all of them, no grids that are wider
// than high, and channels with images alone.
[[nodiscard]] std::vector<Arrangement> arrangements(const std::vector<double>& speeds, Index batch);

// The arrangement that made a group, of equal parts.
[[nodiscard]] Arrangement arrangement_of(const Group& group);

// The group that an arrangement makes of layers [first, last], or nothing where it does not fit:
// fewer cells than parts, or channels cut behind which a layer needs all of them.
[[nodiscard]] std::optional<Group> arranged_group(
    const Network& network, int first, int last, const Arrangement& arrangement, Index batch);

// The same group with rows or columns cut on the grid of Winograd's tiles of its last convolution,
// or nothing where that shares them out no more evenly: a tile that a boundary goes through is
// computed on both sides of it. Neighbours of a convolution before it in the group may lose by
// that.
[[nodiscard]] std::optional<Group> cut_on_tiles(const Network& network,
                                                const std::vector<ConvolutionKernels>& kernels,
                                                const Arrangement& arrangement,
                                                const Group& group);

}  // namespace tessera::partitioner
