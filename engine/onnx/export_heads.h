// The decoder of a detector's heads as nodes: boxes in pixels of the input, and the score of each
// class times objectness.

#pragma once

#include "engine/onnx/export_graph.h"
#include "partitioner/network/network.h"

namespace tessera::engine {

// (N, boxes, 4 + classes) of the head in a layer, from the value before it: (N, C, H, W), of a
// [detection] (N, C). Boxes: centre x, y, width, height.
[[nodiscard]] GraphValue boxes_of_head(GraphBuilder& graph,
                                       const partitioner::Network& network,
                                       int layer,
                                       const GraphValue& in);

// (N, cells, 5 + classes) of a [yolox] head: x, y, width and height as the network says them, then
// objectness and the classes, which have been through a logistic.
[[nodiscard]] GraphValue cells_of_head(GraphBuilder& graph, const GraphValue& in);

struct HeadCounts {
  Index boxes = 0;
  Index classes = 0;
};
[[nodiscard]] HeadCounts head_counts(const partitioner::Network& network, int layer);

}  // namespace tessera::engine
