#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/detection/head_cells.h"
#include "engine/detection/object_assignment.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

using partitioner::kBoxValues;
using partitioner::YoloxHead;

namespace {

// Cross-entropy of the logistic of a value with a target.
double cross_entropy(double value, double target) {
  return std::max(value, 0.0) - value * target + std::log1p(std::exp(-std::abs(value)));
}

// A side of a box and one of an object along one axis: what they have in common, and its slopes.
struct Overlap {
  double size = 0;
  double by_centre = 0;
  double by_side = 0;
};
Overlap overlap(double centre, double side, double other_centre, double other_side) {
  // Where both end at one place, half of a change counts.
  const auto counts = [](double of_box, double of_other) {
    return of_box < of_other ? 1 : of_box > of_other ? 0 : 0.5;
  };
  const double end = centre + side / 2;
  const double other_end = other_centre + other_side / 2;
  const double begin = centre - side / 2;
  const double other_begin = other_centre - other_side / 2;
  const double moves_end = counts(end, other_end);
  const double moves_begin = counts(-begin, -other_begin);
  return {std::min(end, other_end) - std::max(begin, other_begin),
          moves_end - moves_begin,
          (moves_end + moves_begin) / 2};
}

class YoloxJudge {
 public:
  YoloxJudge(
      const YoloxHead& head, const HeadSite& site, bool with_l1, HeadCells& cells, HeadCost& cost)
      : head_(head), site_(site), with_l1_(with_l1), cells_(cells), cost_(cost) {}

  void run(const std::vector<PixelObject>& objects, const std::vector<AssignedCell>& assigned) {
    cells_.for_each([&](Place at) { judge_background(at); });
    for (const AssignedCell& cell : assigned) {
      if (cell.object != kNoObject) {
        judge_object(cell.at, objects[static_cast<std::size_t>(cell.object)]);
      }
    }
  }

 private:
  // What is sent back is minus the slope of the loss.
  void lose(double loss) { cost_.assigned_losses += loss; }

  void judge_background(Place at) {
    const double value = cells_.value(kObjectness, at);
    lose(head_.object_normalizer * cross_entropy(value, 0));
    cells_.delta(kObjectness, at) = -head_.object_normalizer * logistic(value);
    for (Index channel = 0; channel < kBoxValues + head_.classes; ++channel) {
      if (!std::isfinite(cells_.value(channel, at))) {  // though no loss may look at it
        lose(std::numeric_limits<double>::quiet_NaN());
      }
    }
  }

  void judge_object(Place at, const PixelObject& object) {
    ++cost_.assigned;
    const double value = cells_.value(kObjectness, at);
    lose(-head_.object_normalizer * value);  // 1 where it was 0
    cells_.delta(kObjectness, at) += head_.object_normalizer;
    const double values[] = {
        cells_.value(0, at), cells_.value(1, at), cells_.value(2, at), cells_.value(3, at)};
    const CentredBox said = said_box(site_, at, values);
    judge_box(at, said, object.box);
    const double common = iou(object.box, said);
    for (Index label = 0; label < head_.classes; ++label) {
      const double target = label == object.label ? common : 0;
      const double of_class = cells_.value(kBoxValues + label, at);
      lose(head_.class_normalizer * cross_entropy(of_class, target));
      cells_.delta(kBoxValues + label, at) = head_.class_normalizer * (target - logistic(of_class));
    }
    if (with_l1_) {
      judge_distance(at, values, object.box);
    }
  }

  // 1 - IoU^2.
  void judge_box(Place at, const CentredBox& said, const CentredBox& object) {
    constexpr double kAdded = 1e-16;
    const double common = iou(said, object, kAdded);
    lose(head_.iou_normalizer * (1 - common * common));
    if (common == 0) {
      return;
    }
    const Overlap across = overlap(said.x, said.width, object.x, object.width);
    const Overlap down = overlap(said.y, said.height, object.y, object.height);
    const double shared = across.size * down.size;
    const double all = said.width * said.height + object.width * object.height - shared + kAdded;
    // By what is shared and by the box's area.
    const double factor = head_.iou_normalizer * 2 * common;
    const double by_shared = factor * (all + shared) / (all * all);
    const double by_area = -factor * shared / (all * all);
    const auto [x, y] = cell_size(site_);
    cells_.delta(0, at) = by_shared * across.by_centre * down.size * x;
    cells_.delta(1, at) = by_shared * down.by_centre * across.size * y;
    cells_.delta(2, at) =
        (by_shared * across.by_side * down.size + by_area * said.height) * said.width;
    cells_.delta(3, at) =
        (by_shared * down.by_side * across.size + by_area * said.width) * said.height;
  }

  void judge_distance(Place at, const double* values, const CentredBox& object) {
    constexpr double kLeast = 1e-8;
    const auto [x, y] = cell_size(site_);
    const double targets[] = {object.x / x - static_cast<double>(at.col),
                              object.y / y - static_cast<double>(at.row),
                              std::log(object.width / x + kLeast),
                              std::log(object.height / y + kLeast)};
    for (Index entry = 0; entry < kObjectness; ++entry) {
      const double distance = targets[entry] - values[entry];
      lose(std::abs(distance));
      cells_.delta(entry, at) += distance > 0 ? 1 : distance < 0 ? -1 : 0;
    }
  }

  const YoloxHead& head_;
  const HeadSite& site_;
  bool with_l1_;
  HeadCells& cells_;
  HeadCost& cost_;
};

}  // namespace

void judge(const YoloxHead& head,
           const HeadSite& site,
           const JudgedBatch& batch,
           HeadCells& cells,
           HeadCost& cost) {
  expects(batch.assigned != nullptr, "objects have been assigned to cells");
  const auto image = static_cast<std::size_t>(cells.region().images.begin);
  YoloxJudge(head, site, head.l1.value_or(batch.in_last_epochs), cells, cost)
      .run(objects_to_assign(site, batch.targets[image]->boxes), (*batch.assigned)[image]);
}

}  // namespace tessera::engine
