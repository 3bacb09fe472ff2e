// The layers at the beginning of a network whose maps depend on nothing but the image, as long as
// their parameters do not change: what they make of an image once is what they always make of it.

#pragma once

#include <vector>

#include "partitioner/network/network.h"

namespace tessera::partitioner {

struct FrozenTrunk {
  int last = -1;               // layers 0 to that one; -1: there are none
  std::vector<int> maps = {};  // that layers behind them read, rising

  [[nodiscard]] bool empty() const { return last < 0; }
  friend bool operator==(const FrozenTrunk&, const FrozenTrunk&) = default;
};

// As many layers as have no backward pass, drop nothing out and have no loss, and whose cells do
// not depend on how many images there are, as those of [connected] do in their last bits. Empty
// where a layer behind them reads the image, and where all are such.
[[nodiscard]] FrozenTrunk frozen_trunk(const Network& network);

}  // namespace tessera::partitioner
