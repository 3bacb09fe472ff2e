// Testing a network on the pictures of a data loader.

#pragma once

#include "engine/train/classification_metrics.h"
#include "engine/train/data_loader.h"

namespace tessera::engine {

struct EvaluationResult {
  double loss = 0;
  double accuracy = 0;  // share of pictures whose largest output is that of their label
  Index pictures = 0;
  ClassificationMetrics classes;  // rank 0
};

// All pictures of the loader once, with running statistics. All ranks call this together;
// AgreedError where a picture cannot be read. Throws Stopped on all ranks where one of them gets a
// signal that asks it to end, after the batch at hand.
[[nodiscard]] EvaluationResult evaluate(Execution<float>& execution, DataLoader& loader);

}  // namespace tessera::engine
