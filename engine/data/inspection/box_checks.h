// What is doubtful about the boxes of a data set as a whole: nothing that no object can have, but
// what faults of converters and of exports look like, or what a model cannot learn. One problem for
// each kind, with a count and the first picture.

#pragma once

#include <vector>

#include "engine/data/inspection/data_summary.h"
#include "partitioner/network/network.h"

namespace tessera::engine {

// Boxes that reach out of their pictures, or that hardly have an extent; no object to train or to
// test with; classes without one. None where pictures have no boxes.
[[nodiscard]] std::vector<DataProblem> box_problems(const InspectedData& data);

// The same of what the heads of a network take: more objects on a picture than they have room for,
// objects of some pixels of its input.
[[nodiscard]] std::vector<DataProblem> box_problems(const InspectedData& data,
                                                    const partitioner::Network& network);

}  // namespace tessera::engine
