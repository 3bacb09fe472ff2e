// What reports call the parts of a partition.

#pragma once

#include <string>
#include <vector>

#include "partitioner/partition/partition.h"
#include "partitioner/plan/plan.h"

namespace tessera::partitioner {

[[nodiscard]] std::string shape_text(const MapShape& shape);           // "64x152x152"
[[nodiscard]] std::string layers_text(int first, int last);            // "4-7", "4"
[[nodiscard]] std::string named_layers(int first, int last);           // "layers 4-7", "layer 4"
[[nodiscard]] std::vector<std::string> cut_words(const Group& group);  // "images in 4", "2x2 tiles"

// "layers 0-15 as 2x2 tiles", "16-19 as images in 4", ...: where one cut is handed over to another.
[[nodiscard]] std::vector<std::string> hand_overs(const Partition& partition);

// "layers 0-3", "8-11": groups that are recomputed; empty where none is.
[[nodiscard]] std::vector<std::string> recomputed_words(const Partition& partition);

// Why training on such replicas, whose gradients or parameters travel like that, is not what one
// device computes, a phrase for each reason; empty where it is. `tile_statistics`: each of several
// tiles takes batch statistics of its own.
[[nodiscard]] std::vector<std::string> inexact_words(const Network& network,
                                                     const Replicas& replicas,
                                                     const Compression& compression,
                                                     bool tile_statistics = false);

// "direct for layers 0 3", "winograd4 for layers 1 2"; empty without convolutions.
[[nodiscard]] std::vector<std::string> kernel_words(const Network& network, const Plan& plan);

// "convolutional x2", "maxpool"
[[nodiscard]] std::vector<std::string> kind_words(const Network& network, const Group& group);

}  // namespace tessera::partitioner
