// One parameter tensor on one rank: the slice that the rank computes with. A tensor is a row of
// elements: e of (K, row).

#pragma once

#include "engine/base/tensor.h"
#include "partitioner/plan/plan.h"

namespace tessera::engine {

template <class T>
struct Parameter {
  const partitioner::ParameterPlan* plan = nullptr;
  // The gradient of a normalised layer's scale or shift: with synchronised statistics the backward
  // pass has already reduced it over all ranks.
  bool normalized = false;
  Range held;                // elements of the whole tensor
  Array<T> values;           // of them
  Array<T> gradient;         // of them; empty where nothing is learnt
  bool has_gradient = true;  // else what stands there means nothing: that of weights, so far

  [[nodiscard]] Index size() const {
    return plan->shape.channels * plan->shape.row;
  }  // of the whole tensor
};

}  // namespace tessera::engine
