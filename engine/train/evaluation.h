// Testing a network on the pictures of a data loader.

#pragma once

#include <vector>

#include "engine/train/data_loader.h"
#include "engine/train/metrics/metric.h"
#include "engine/train/trunk_cache.h"

namespace tessera::engine {

struct EvaluationResult {
  double loss = 0;
  Index pictures = 0;
  std::vector<MetricValue> values = {};  // of the metric, the same on all ranks
  const Metric* metric = nullptr;        // which has seen all of them on rank 0

  // What says which of two networks is better.
  [[nodiscard]] const MetricValue& score() const { return values.front(); }
};

// All pictures of the loader once, with running statistics. The metric starts afresh; it judges the
// maps of output_layers(). All ranks call this together; AgreedError where a picture cannot be
// read. Throws Stopped on all ranks where one of them gets a signal that asks it to end, after the
// batch at hand. `trunk`, where it is not null: of this execution and this loader.
[[nodiscard]] EvaluationResult evaluate(Execution<float>& execution,
                                        DataLoader& loader,
                                        Metric& metric,
                                        TrunkCache* trunk = nullptr);

}  // namespace tessera::engine
