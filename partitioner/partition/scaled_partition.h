// The same decision for the same network with an input of another size.

#pragma once

#include "partitioner/partition/partition.h"

namespace tessera::partitioner {

// Rows and columns that are cut as equally as can be stay so; other cuts lie at the same share of
// the map, to a whole cell. Everything else stays as it is. `to` has the layers of `from`.
[[nodiscard]] Partition scaled(Partition partition, const Network& from, const Network& to);

}  // namespace tessera::partitioner
