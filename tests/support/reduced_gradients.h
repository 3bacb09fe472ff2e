// The reduction of all gradients at once, without the rest of a step.

#pragma once

#include "engine/execution/parameters.h"

namespace tessera::tests {

// Gradients travel exactly.
template <class T>
void reduce_gradients(engine::ParameterSet<T>& parameters, engine::BatchNormMode mode) {
  for (int bucket = 0; bucket < parameters.buckets(); ++bucket) {
    parameters.start_gradients(bucket, mode != engine::BatchNormMode::Sync);
  }
  for (int bucket = 0; bucket < parameters.buckets(); ++bucket) {
    parameters.finish_gradients(bucket);
  }
}

}  // namespace tessera::tests
