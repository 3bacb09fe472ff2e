// See import_activations.cpp.

#pragma once

#include "engine/onnx/import_translation.h"

namespace tessera::engine {

// The output of a node is an activation of its input i, which the operator reads so many times.
void put_activated(Translation& translation,
                   const onnx::NodeProto& node,
                   int i,
                   partitioner::Activation activation,
                   int times = 1);

}  // namespace tessera::engine
