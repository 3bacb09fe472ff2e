#include <algorithm>
#include <cmath>

#include "engine/detection/head_cells.h"
#include "engine/ops/activation/softmax.h"

namespace tessera::engine {

using partitioner::GridHead;

namespace {

constexpr Place kOnlyCell = {0, 0};  // of the map: the cells of the grid are in its channels

class GridJudge {
 public:
  GridJudge(const GridHead& head, HeadCells& cells)
      : head_(head), channels_{head}, cells_(cells), side_(static_cast<double>(head.side)) {}

  void run(const std::vector<Box>& objects) {
    for (Index cell = 0; cell < channels_.cells(); ++cell) {
      for (Index box = 0; box < head_.boxes; ++box) {
        const Index at = channels_.objectness(cell, box);
        delta(at) = -head_.no_object_scale * value(at);
      }
    }
    std::vector<bool> taken(static_cast<std::size_t>(channels_.cells()));
    const partitioner::MapShape grid{1, head_.side, head_.side};
    for (const Box& object : objects) {
      const Place at = cell_of(object, grid);
      const Index cell = at.row * head_.side + at.col;
      if (!taken[static_cast<std::size_t>(cell)] && object.label >= 0 &&
          object.label < head_.classes) {
        taken[static_cast<std::size_t>(cell)] = true;
        judge_object(cell, at, object);
      }
    }
  }

 private:
  [[nodiscard]] double value(Index channel) const { return cells_.value(channel, kOnlyCell); }
  [[nodiscard]] double& delta(Index channel) { return cells_.delta(channel, kOnlyCell); }

  // From the cell's corner.
  [[nodiscard]] UnitBox prediction(Index cell, Index box) const {
    const Index at = channels_.coordinates(cell, box);
    return {value(at) / side_,
            value(at + 1) / side_,
            channels_.size(value(at + 2)),
            channels_.size(value(at + 3))};
  }

  [[nodiscard]] Index best_box(Index cell, const UnitBox& target) const {
    if (head_.forced) {
      constexpr double kSmall = 0.1;
      return target.width * target.height < kSmall ? 1 : 0;
    }
    Index best = 0;
    double best_iou = 0;
    double least_distance = 20;
    for (Index box = 0; box < head_.boxes; ++box) {
      const UnitBox predicted = prediction(cell, box);
      const double common = iou(predicted, target);
      const double distance =
          std::sqrt(std::pow(predicted.x - target.x, 2) + std::pow(predicted.y - target.y, 2) +
                    std::pow(predicted.width - target.width, 2) +
                    std::pow(predicted.height - target.height, 2));
      if (common > best_iou) {
        best_iou = common;
        best = box;
      } else if (best_iou == 0 && common == 0 && distance < least_distance) {
        least_distance = distance;
        best = box;
      }
    }
    return best;
  }

  void judge_object(Index cell, Place at, const Box& object) {
    for (Index label = 0; label < head_.classes; ++label) {
      const Index channel = channels_.classes(cell) + label;
      delta(channel) = head_.class_scale * ((label == object.label ? 1 : 0) - value(channel));
    }
    // The place within the cell.
    const double x = object.centre_x * side_ - static_cast<double>(at.col);
    const double y = object.centre_y * side_ - static_cast<double>(at.row);
    const UnitBox target{x / side_, y / side_, object.width, object.height};
    const Index best = best_box(cell, target);
    const double wanted = head_.rescore ? iou(prediction(cell, best), target) : 1;
    const Index objectness_at = channels_.objectness(cell, best);
    delta(objectness_at) = head_.object_scale * (wanted - value(objectness_at));
    const auto size = [&](double of_object) {
      return head_.square_roots ? std::sqrt(of_object) : of_object;
    };
    const Index first = channels_.coordinates(cell, best);
    const double wanted_values[] = {x, y, size(object.width), size(object.height)};
    for (Index i = 0; i < GridChannels::kCoordinates; ++i) {
      delta(first + i) = head_.coordinate_scale * (wanted_values[i] - value(first + i));
    }
  }

  const GridHead& head_;
  GridChannels channels_;
  HeadCells& cells_;
  double side_ = 1;
};

}  // namespace

void judge(const GridHead& head, const std::vector<Box>& objects, HeadCells& cells) {
  GridJudge(head, cells).run(objects);
}

void activate(const GridHead& head, std::vector<double>& values) {
  for (Index cell = 0; cell < head.side * head.side && head.softmax; ++cell) {
    double* classes = values.data() + cell * head.classes;
    softmax_forward({head.classes}, static_cast<const double*>(classes), classes);
  }
}

void activate_backward(const GridHead& head,
                       const std::vector<double>& values,
                       std::vector<double>& gradient) {
  for (Index cell = 0; cell < head.side * head.side && head.softmax; ++cell) {
    const Index first = cell * head.classes;
    softmax_gradient_in_place(values.data() + first, gradient.data() + first, head.classes);
  }
}

}  // namespace tessera::engine
