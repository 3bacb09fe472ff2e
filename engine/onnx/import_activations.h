// See import_activations.cpp.

#pragma once

#include "engine/onnx/import_translation.h"

namespace tessera::engine {

// The output of a node is an activation of the value of this name, which is read so many times to
// compute it.
void put_activated(Translation& translation,
                   const onnx::NodeProto& node,
                   const Value& argument,
                   const std::string& name,
                   partitioner::Activation activation,
                   int times = 1);

}  // namespace tessera::engine
