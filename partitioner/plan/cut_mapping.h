// How the cut of a group's output is carried down to the maps before it: it decides who owns which
// cells of the maps inside a group.

#pragma once

#include <vector>

#include "partitioner/base/region.h"
#include "partitioner/network/network.h"
#include "partitioner/partition/partition.h"

namespace tessera::partitioner {

using Boundaries = std::vector<Index>;  // of P parts: P + 1 of them, from 0 to the extent

// A cut of one map in all four dimensions.
struct MapCut {
  Boundaries images;
  Boundaries channels;
  Boundaries rows;
  Boundaries cols;
  std::vector<Boundaries> bands = {};  // of images, in each part of the rows: see Group::bands
};

// The cut of the output of the group's last layer.
[[nodiscard]] MapCut cut_of_output(const Network& network, const Group& group, Index batch);

// The cut of a layer's input number `input` that goes with `cut` of its output. It follows strides,
// so that tiles are adjacent where windows begin; the first and the last tile reach to the edge.
[[nodiscard]] MapCut cut_of_input(const Network& network,
                                  int layer,
                                  std::size_t input,
                                  const MapCut& cut);

// The cuts of the outputs of all layers of a group, from its first on: the last one's, carried back
// to what is read from layer to layer. By its first reader in the group; a map without one is cut
// in proportion.
[[nodiscard]] std::vector<MapCut> cuts_of_group(const Network& network,
                                                const Group& group,
                                                Index batch);

// The cut of the image that goes with that of the first group.
[[nodiscard]] MapCut cut_of_image(const Network& network, const Group& first, Index batch);

// Tile number `tile` of a cut, in the order of Group::ranks.
[[nodiscard]] Region tile_region(const MapCut& cut, Index tile);

}  // namespace tessera::partitioner
