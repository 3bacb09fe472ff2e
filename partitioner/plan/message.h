// Cells on their way from one rank to another.

#pragma once

#include "partitioner/base/region.h"

namespace tessera::partitioner {

// Cells that `from` owns and `to` requires. Forward copies them, backward sends their gradients the
// other way and adds.
struct Message {
  int from = 0;
  int to = 0;
  Region region;
  friend bool operator==(const Message&, const Message&) = default;
};

}  // namespace tessera::partitioner
