#include "engine/onnx/export_heads.h"

#include <utility>

#include "partitioner/base/errors.h"

namespace tessera::engine {

using partitioner::Anchor;
using partitioner::GridHead;
using partitioner::kBoxValues;
using partitioner::MapShape;
using partitioner::RegionHead;
using partitioner::YoloHead;
using partitioner::YoloxHead;

namespace {

constexpr std::size_t kValueAxis = 2;  // of (N, boxes, values)
constexpr Index kPlaces = 2;           // x, y; then width, height
constexpr Index kObjectness = partitioner::kObjectnessChannel;

// Numbers for x and y of each box, or width and height.
using Pairs = std::vector<float>;

// What is the same in the heads whose channels are values of the boxes of a cell.
struct AnchorBoxes {
  std::vector<Anchor> anchors = {};  // pixels
  Index classes = 0;
  double scale_xy = 1;
  bool activated = false;  // values have their logistic, and sizes are squares
  bool softmax = false;    // over classes
};

struct Pixels {  // of the input to a cell
  double x = 1;
  double y = 1;
};

Pixels pixels_of_cell(const MapShape& image, const MapShape& map) {
  return {static_cast<double>(image.cols) / static_cast<double>(map.cols),
          static_cast<double>(image.rows) / static_cast<double>(map.rows)};
}

AnchorBoxes anchor_boxes(const YoloHead& head, const Pixels& /*cell*/) {
  AnchorBoxes boxes{
      .classes = head.classes, .scale_xy = head.scale_xy, .activated = head.new_coords};
  for (const int anchor : head.mask) {
    boxes.anchors.push_back(head.anchors[static_cast<std::size_t>(anchor)]);
  }
  return boxes;
}

AnchorBoxes anchor_boxes(const RegionHead& head, const Pixels& cell) {
  AnchorBoxes boxes{.classes = head.classes, .softmax = head.softmax};
  for (const Anchor& anchor : head.anchors) {
    boxes.anchors.push_back({anchor.width * cell.x, anchor.height * cell.y});
  }
  return boxes;
}

// Calls visit(row, col, anchor) in the order of boxes.
template <class Visit>
Pairs for_each_box(const MapShape& map, Index anchors, Visit visit) {
  Pairs pairs;
  for (Index row = 0; row < map.rows; ++row) {
    for (Index col = 0; col < map.cols; ++col) {
      for (Index anchor = 0; anchor < anchors; ++anchor) {
        const auto [x, y] = visit(row, col, anchor);
        pairs.insert(pairs.end(), {static_cast<float>(x), static_cast<float>(y)});
      }
    }
  }
  return pairs;
}

// A number for each value of an image, (1, boxes, 2).
GraphValue in_full(GraphBuilder& graph, const char* name, const Pairs& pairs) {
  return graph.constant(name, {1, std::ssize(pairs) / kPlaces, kPlaces}, pairs);
}

// Joins x, y, width, height and the classes times objectness.
GraphValue joined(GraphBuilder& graph,
                  const GraphValue& places,
                  const GraphValue& sizes,
                  const GraphValue& objectness,
                  const GraphValue& classes) {
  return graph.concat({places, sizes, graph.binary("Mul", classes, objectness)}, kValueAxis);
}

// (N, anchors * values, H, W) -> (N, H * W * anchors, values).
GraphValue by_box(GraphBuilder& graph, const GraphValue& in, Index anchors) {
  const std::vector<Index>& shape = in.shape;
  const Index values = shape[1] / anchors;
  const GraphValue apart = graph.reshape(in, {shape[0], anchors, values, shape[2], shape[3]});
  return graph.reshape(graph.transpose(apart, {0, 3, 4, 1, 2}),
                       {shape[0], shape[2] * shape[3] * anchors, values});
}

GraphValue decoded(GraphBuilder& graph,
                   const AnchorBoxes& boxes,
                   const MapShape& map,
                   const Pixels& cell,
                   const GraphValue& in) {
  const auto anchors = std::ssize(boxes.anchors);
  const GraphValue all = by_box(graph, in, anchors);
  const auto part = [&](Index begin, Index end) {
    return graph.slice(all, kValueAxis, {begin, end});
  };
  const auto logistic = [&](const GraphValue& value) {
    return boxes.activated ? value : graph.unary("Sigmoid", value);
  };
  const Pairs stretches = for_each_box(map, anchors, [&](Index, Index, Index) {
    return std::pair(boxes.scale_xy * cell.x, boxes.scale_xy * cell.y);
  });
  const double before = (boxes.scale_xy - 1) / 2;
  const Pairs corners = for_each_box(map, anchors, [&](Index row, Index col, Index) {
    return std::pair((static_cast<double>(col) - before) * cell.x,
                     (static_cast<double>(row) - before) * cell.y);
  });
  const Pairs sizes = for_each_box(map, anchors, [&](Index, Index, Index anchor) {
    const Anchor& size = boxes.anchors[static_cast<std::size_t>(anchor)];
    const double factor = boxes.activated ? 4 : 1;
    return std::pair(factor * size.width, factor * size.height);
  });
  const GraphValue within =
      graph.binary("Mul", logistic(part(0, kPlaces)), in_full(graph, "stretches", stretches));
  const GraphValue places = graph.binary("Add", within, in_full(graph, "corners", corners));
  const GraphValue said = part(kPlaces, kObjectness);
  const GraphValue factors =
      boxes.activated ? graph.binary("Mul", said, said) : graph.unary("Exp", said);
  const GraphValue classes = part(kBoxValues, kBoxValues + boxes.classes);
  return joined(graph,
                places,
                graph.binary("Mul", factors, in_full(graph, "anchors", sizes)),
                logistic(part(kObjectness, kBoxValues)),
                boxes.softmax ? graph.softmax(classes, kValueAxis) : logistic(classes));
}

// Of a [yolox].
GraphValue decoded(GraphBuilder& graph,
                   const YoloxHead& head,
                   const MapShape& map,
                   const Pixels& cell,
                   const GraphValue& in) {
  const GraphValue all = by_box(graph, in, 1);
  const auto part = [&](Index begin, Index end) {
    return graph.slice(all, kValueAxis, {begin, end});
  };
  const Pairs strides =
      for_each_box(map, 1, [&](Index, Index, Index) { return std::pair(cell.x, cell.y); });
  const Pairs corners = for_each_box(map, 1, [&](Index row, Index col, Index) {
    return std::pair(static_cast<double>(col) * cell.x, static_cast<double>(row) * cell.y);
  });
  const GraphValue pixels = in_full(graph, "strides", strides);
  return joined(
      graph,
      graph.binary(
          "Add", graph.binary("Mul", part(0, kPlaces), pixels), in_full(graph, "corners", corners)),
      graph.binary("Mul", graph.unary("Exp", part(kPlaces, kObjectness)), pixels),
      graph.unary("Sigmoid", part(kObjectness, kBoxValues)),
      graph.unary("Sigmoid", part(kBoxValues, kBoxValues + head.classes)));
}

// Of a [detection]: classes of each cell, objectness of its boxes, then their x, y, width, height.
GraphValue decoded(GraphBuilder& graph,
                   const GridHead& head,
                   const MapShape& image,
                   const GraphValue& in) {
  const Index cells = head.side * head.side;
  const Index images = in.shape[0];
  constexpr Index kCoordinates = 4;
  const auto part = [&](Index begin, Index values) {
    return graph.reshape(graph.slice(in, 1, {begin * cells, (begin + values) * cells}),
                         {images, cells, values});
  };
  GraphValue classes = part(0, head.classes);
  classes = head.softmax ? graph.softmax(classes, kValueAxis) : classes;
  const GraphValue objectness = part(head.classes, head.boxes);
  const GraphValue coordinates = part(head.classes + head.boxes, head.boxes * kCoordinates);
  const MapShape grid{1, head.side, head.side};
  const Pixels cell = pixels_of_cell(image, grid);
  const auto constant = [&](const char* name, auto value) {
    return in_full(graph, name, for_each_box(grid, 1, value));
  };
  const GraphValue cell_sizes =
      constant("stretches", [&](Index, Index, Index) { return std::pair(cell.x, cell.y); });
  const GraphValue corners = constant("corners", [&](Index row, Index col, Index) {
    return std::pair(static_cast<double>(col) * cell.x, static_cast<double>(row) * cell.y);
  });
  const GraphValue whole =
      constant("sizes", [&](Index, Index, Index) { return std::pair(image.cols, image.rows); });
  std::vector<GraphValue> boxes;
  for (Index box = 0; box < head.boxes; ++box) {
    const Index first = box * kCoordinates;
    const GraphValue within = graph.slice(coordinates, kValueAxis, {first, first + kPlaces});
    GraphValue sizes =
        graph.slice(coordinates, kValueAxis, {first + kPlaces, first + kCoordinates});
    sizes = head.square_roots ? graph.binary("Mul", sizes, sizes) : sizes;
    boxes.push_back(joined(graph,
                           graph.binary("Add", graph.binary("Mul", within, cell_sizes), corners),
                           graph.binary("Mul", sizes, whole),
                           graph.slice(objectness, kValueAxis, {box, box + 1}),
                           classes));
  }
  return graph.concat(boxes, 1);
}

}  // namespace

GraphValue boxes_of_head(GraphBuilder& graph,
                         const partitioner::Network& network,
                         int layer,
                         const GraphValue& in) {
  const partitioner::Operation& operation = network.layer(layer).operation;
  const MapShape& map = network.shape(layer);
  const Pixels cell = pixels_of_cell(network.image, map);
  if (const auto* yolo = std::get_if<YoloHead>(&operation)) {
    return decoded(graph, anchor_boxes(*yolo, cell), map, cell, in);
  }
  if (const auto* region = std::get_if<RegionHead>(&operation)) {
    return decoded(graph, anchor_boxes(*region, cell), map, cell, in);
  }
  if (const auto* yolox = std::get_if<YoloxHead>(&operation)) {
    const double stride = yolox->stride;
    return decoded(graph, *yolox, map, stride > 0 ? Pixels{stride, stride} : cell, in);
  }
  return decoded(graph, std::get<GridHead>(operation), network.image, in);
}

GraphValue cells_of_head(GraphBuilder& graph, const GraphValue& in) {
  const GraphValue all = by_box(graph, in, 1);
  return graph.concat(
      {graph.slice(all, kValueAxis, {0, kObjectness}),
       graph.unary("Sigmoid", graph.slice(all, kValueAxis, {kObjectness, in.shape[1]}))},
      kValueAxis);
}

HeadCounts head_counts(const partitioner::Network& network, int layer) {
  const partitioner::Operation& operation = network.layer(layer).operation;
  const MapShape& map = network.shape(layer);
  if (const auto* yolo = std::get_if<YoloHead>(&operation)) {
    return {map.rows * map.cols * std::ssize(yolo->mask), yolo->classes};
  }
  if (const auto* region = std::get_if<RegionHead>(&operation)) {
    return {map.rows * map.cols * std::ssize(region->anchors), region->classes};
  }
  if (const auto* yolox = std::get_if<YoloxHead>(&operation)) {
    return {map.rows * map.cols, yolox->classes};
  }
  const auto& grid = std::get<GridHead>(operation);
  return {grid.side * grid.side * grid.boxes, grid.classes};
}

}  // namespace tessera::engine
