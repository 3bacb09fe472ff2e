// What travels from one rank to another.

#pragma once

#include "partitioner/plan/payload.h"

namespace tessera::partitioner {

// What `from` owns and `to` requires. Forward copies it, backward sends gradients the other
// way and adds.
struct Message {
  int from = 0;
  int to = 0;
  Payload payload;
  friend bool operator==(const Message&, const Message&) = default;
};

}  // namespace tessera::partitioner
