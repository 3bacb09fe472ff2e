// Activations as nodes that OpenCV 4.6 reads, too: no Clip, whose bounds it takes as attributes
// alone, and no Min.

#pragma once

#include "engine/onnx/export_graph.h"
#include "partitioner/network/network.h"

namespace tessera::engine {

[[nodiscard]] GraphValue activated(GraphBuilder& graph,
                                   partitioner::Activation activation,
                                   const GraphValue& in);

}  // namespace tessera::engine
