// The metric that a network is judged by when it is tested.

#pragma once

#include <memory>
#include <string>

#include "engine/train/metrics/metric.h"
#include "partitioner/network/network.h"

namespace tessera::engine {

// Of the boxes of a detector, else of classes.
[[nodiscard]] std::unique_ptr<Metric> make_metric(const partitioner::Network& network);

// The first of its values, of no picture yet.
[[nodiscard]] MetricValue score_of(const partitioner::Network& network);

// What files call it: "accuracy", or "map50" of a detector.
[[nodiscard]] std::string score_name(const partitioner::Network& network);

// What a test of so many pictures takes on rank 0, at most, beside what the network does: outputs
// of a pass of `images`, and what the metric keeps.
[[nodiscard]] Index judging_bytes(const partitioner::Network& network,
                                  Index images,
                                  Index pictures);

}  // namespace tessera::engine
