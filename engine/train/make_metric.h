// The metric that a network is judged by when it is tested.

#pragma once

#include <memory>

#include "engine/train/metric.h"
#include "partitioner/network/network.h"

namespace tessera::engine {

// Of the boxes of a detector, else of classes.
[[nodiscard]] std::unique_ptr<Metric> make_metric(const partitioner::Network& network);

}  // namespace tessera::engine
