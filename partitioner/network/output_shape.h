// The shape of what a layer makes of its inputs, and whether it can.

#pragma once

#include <string>
#include <vector>

#include "partitioner/network/network.h"

namespace tessera::partitioner {

// Throws std::invalid_argument with that message where the condition does not hold.
void require(bool condition, const std::string& message);

// a * b for sizes, stopping at the largest Index.
[[nodiscard]] Index saturating_product(Index a, Index b);

// Throws std::invalid_argument that says what is wrong where the operation does not fit these
// shapes, or a map or its weights are larger than can be addressed.
[[nodiscard]] MapShape output_shape(const Operation& operation,
                                    const std::vector<MapShape>& inputs);

}  // namespace tessera::partitioner
