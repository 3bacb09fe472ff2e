// What a network is trained to make small: the sum of its losses, each taken of the map of one
// layer where the cells of that map are owned.
//
// A map that no layer reads ends a branch of the network. Below it, [cost] and dropout layers
// aside, stands what the branch is judged by: a softmax by its cross-entropy, else the first of the
// [cost] layers by half the squared error; a branch with neither has no loss. A head of a detector
// ends its branch, and is judged by the boxes of an image: see heads.h.

#pragma once

#include <optional>
#include <vector>

#include "partitioner/network/layer_traits.h"
#include "partitioner/network/network.h"

namespace tessera::partitioner {

struct Loss {
  int layer = 0;  // whose map is compared with the targets
  LossForm form = LossForm::None;
  double weight = 1;  // what it is multiplied by in the sum
  // Gradients of other losses reach the layer, too: some reader of its map leads on, not just to an
  // end of the network.
  bool gets_gradient = false;

  friend bool operator==(const Loss&, const Loss&) = default;
};

// By layer; none twice.
[[nodiscard]] std::vector<Loss> losses(const Network& network);

// The loss of one layer.
[[nodiscard]] std::optional<Loss> loss_of(const Network& network, int layer);

// The classes that the layer of a loss tells apart: the values of its map, or those of a head.
[[nodiscard]] Index classes_of(const Network& network, int layer);

// The layer whose map is what the network says of an image: that of the last loss; without any, the
// last layer.
[[nodiscard]] int output_layer(const Network& network);

// The layers whose maps no layer reads.
[[nodiscard]] std::vector<int> ends(const Network& network);

// All layers that say something of an image: the heads of a detector, else the one above.
[[nodiscard]] std::vector<int> output_layers(const Network& network);

// The heads whose objects are assigned by what all of them say of an image ([yolox]); by layer.
[[nodiscard]] std::vector<int> assigned_heads(const Network& network);

// Whether the network finds objects: one of its losses is that of a head.
[[nodiscard]] bool is_detector(const Network& network);

}  // namespace tessera::partitioner
