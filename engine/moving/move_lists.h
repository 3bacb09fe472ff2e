// Which samples of a device go to which other, by a data map.

#pragma once

#include <map>
#include <vector>

#include "engine/data/dataset.h"
#include "partitioner/balance/data_map.h"

namespace tessera::engine {

// For each device that gets some: the items of this rank's data set that go there, rising. Throws
// InputError where the data set has not what the map says, with `map` as its name.
[[nodiscard]] std::map<int, std::vector<Index>> items_to_send(const partitioner::DataMap& data_map,
                                                              const Dataset& dataset,
                                                              int rank,
                                                              const std::string& map);

// All of them together, rising.
[[nodiscard]] std::vector<Index> items_that_leave(const partitioner::DataMap& data_map,
                                                  const Dataset& dataset,
                                                  int rank,
                                                  const std::string& map);

// For each device that some come from: how many.
[[nodiscard]] std::map<int, Index> items_to_receive(const partitioner::DataMap& data_map, int rank);

}  // namespace tessera::engine
