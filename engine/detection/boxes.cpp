#include "engine/detection/boxes.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tessera::engine {

using partitioner::BoxLoss;

namespace {

struct Side {
  double begin = 0;
  double end = 0;
  [[nodiscard]] double size() const { return end - begin; }
};

Side side(double centre, double size) {
  return {centre - size / 2, centre + size / 2};
}

Side hull(const Side& a, const Side& b) {
  return {std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

double common(const Side& a, const Side& b) {
  return std::min(a.end, b.end) - std::max(a.begin, b.begin);
}

double intersection(const UnitBox& a, const UnitBox& b) {
  const double width = common(side(a.x, a.width), side(b.x, b.width));
  const double height = common(side(a.y, a.height), side(b.y, b.height));
  return width < 0 || height < 0 ? 0 : width * height;
}

double either(const UnitBox& a, const UnitBox& b) {
  return a.width * a.height + b.width * b.height - intersection(a, b);
}

// The sides of the smallest box around both.
double hull_width(const UnitBox& a, const UnitBox& b) {
  return hull(side(a.x, a.width), side(b.x, b.width)).size();
}
double hull_height(const UnitBox& a, const UnitBox& b) {
  return hull(side(a.y, a.height), side(b.y, b.height)).size();
}

double square(double value) {
  return value * value;
}

constexpr double kAspectScale = 4 / (std::numbers::pi * std::numbers::pi);

double angle_difference(const UnitBox& box, const UnitBox& truth) {
  return std::atan(truth.width / truth.height) - std::atan(box.width / box.height);
}

// The weight of the ratios of width to height beside an IoU.
double aspect_weight(double aspect_loss, double iou) {
  return aspect_loss / (1 - iou + aspect_loss + 0.000001);
}

// One direction of a box that is to match another: derivatives by where the box begins and ends.
struct SideSlopes {
  double begin = 0;
  double end = 0;
};

SideSlopes intersection_slopes(const Side& box, const Side& truth, double across) {
  return {box.begin > truth.begin ? -across : 0, box.end < truth.end ? across : 0};
}

SideSlopes hull_slopes(const Side& box, const Side& truth, double across) {
  return {box.begin < truth.begin ? -across : 0, box.end > truth.end ? across : 0};
}

// Derivatives of a term of an IoU by the centre and the size of a box.
struct Move {
  double centre = 0;
  double size = 0;
};

struct Areas {
  double both = 0;
  double either = 0;
  double hull = 0;
};

// Sizes in the direction across that of a Side.
struct Across {
  double box = 0;
  double common = 0;
  double hull = 0;
};

// Of the IoU, and of the share that GIoU takes from it, in one direction.
Move iou_move(BoxLoss kind,
              const Side& box,
              const Side& truth,
              const Across& across,
              const Areas& areas,
              bool apart) {
  const SideSlopes both = intersection_slopes(box, truth, across.common);
  const SideSlopes either{-across.box - both.begin, across.box - both.end};
  const SideSlopes hull = hull_slopes(box, truth, across.hull);
  const auto of_iou = [&](double dboth, double deither) {
    return areas.either > 0 ? (areas.either * dboth - areas.both * deither) / square(areas.either)
                            : 0;
  };
  const auto of_hull = [&](double deither, double dhull) {
    return (areas.hull * deither - areas.either * dhull) / square(areas.hull);
  };
  SideSlopes slopes{of_iou(both.begin, either.begin), of_iou(both.end, either.end)};
  if (kind == BoxLoss::Giou && (areas.hull > 0 || apart)) {
    const SideSlopes more{of_hull(either.begin, hull.begin), of_hull(either.end, hull.end)};
    slopes = apart ? more : SideSlopes{slopes.begin + more.begin, slopes.end + more.end};
  }
  return {slopes.begin + slopes.end, slopes.end - slopes.begin};
}

// Of the distance of the centres by the diagonal of the hull, squared; `distance` is that of the
// centres in this direction, from the box to the truth.
Move distance_move(const Side& box,
                   const Side& truth,
                   double distance,
                   double squared_distance,
                   double squared_diagonal) {
  const double hull = std::max(box.end, truth.end) - std::min(box.begin, truth.begin);
  const double at_begin = box.begin < truth.begin ? 1 : 0;
  const double at_end = box.end > truth.end ? 1 : 0;
  const double by_centre = at_end - at_begin;
  const double by_size = 0.5 * (at_end + at_begin);
  return {(2 * distance * squared_diagonal - 2 * hull * by_centre * squared_distance) /
              square(squared_diagonal),
          2 * hull * by_size * squared_distance / square(squared_diagonal)};
}

}  // namespace

double iou(const UnitBox& a, const UnitBox& b) {
  const double both = intersection(a, b);
  const double all = either(a, b);
  return both == 0 || all == 0 ? 0 : both / all;
}

double giou(const UnitBox& a, const UnitBox& b) {
  const double around = hull_width(a, b) * hull_height(a, b);
  return around == 0 ? iou(a, b) : iou(a, b) - (around - either(a, b)) / around;
}

double centre_distance(const UnitBox& a, const UnitBox& b) {
  const double diagonal = square(hull_width(a, b)) + square(hull_height(a, b));
  return diagonal == 0 ? 0 : (square(a.x - b.x) + square(a.y - b.y)) / diagonal;
}

double diou(const UnitBox& a, const UnitBox& b, double exponent) {
  return iou(a, b) - std::pow(centre_distance(a, b), exponent);
}

double ciou(const UnitBox& box, const UnitBox& truth) {
  if (square(hull_width(box, truth)) + square(hull_height(box, truth)) == 0) {
    return iou(box, truth);
  }
  const double both = iou(box, truth);
  const double aspect = kAspectScale * square(angle_difference(box, truth));
  return both - centre_distance(box, truth) - aspect_weight(aspect, both) * aspect;
}

double iou_of_kind(BoxLoss kind, const UnitBox& a, const UnitBox& b) {
  constexpr double kMeasuredExponent = 0.6;
  switch (kind) {
    case BoxLoss::SquaredError:
    case BoxLoss::Iou:
      return iou(a, b);
    case BoxLoss::Giou:
      return giou(a, b);
    case BoxLoss::Diou:
      return diou(a, b, kMeasuredExponent);
    case BoxLoss::Ciou:
      return ciou(a, b);
  }
  return 0;
}

UnitBox darknet_iou_delta(BoxLoss kind, const UnitBox& box, const UnitBox& truth) {
  const Side x = side(box.x, box.width);
  const Side y = side(box.y, box.height);
  const Side truth_x = side(truth.x, truth.width);
  const Side truth_y = side(truth.y, truth.height);
  const double common_x = common(x, truth_x);
  const double common_y = common(y, truth_y);
  const double hull_x = hull(x, truth_x).size();
  const double hull_y = hull(y, truth_y).size();
  const bool apart = common_x <= 0 || common_y <= 0;
  Areas areas;
  areas.both = common_x * common_y;  // positive also where both are negative, as in Darknet
  areas.either = x.size() * y.size() + truth_x.size() * truth_y.size() - areas.both;
  areas.hull = hull_x * hull_y;
  Move horizontal = iou_move(kind, x, truth_x, {y.size(), common_y, hull_y}, areas, apart);
  Move vertical = iou_move(kind, y, truth_y, {x.size(), common_x, hull_x}, areas, apart);
  const double diagonal = square(hull_x) + square(hull_y);
  if ((kind == BoxLoss::Diou || kind == BoxLoss::Ciou) && (diagonal > 0 || apart)) {
    const double distance = square(box.x - truth.x) + square(box.y - truth.y);
    Move more_x = distance_move(x, truth_x, truth.x - box.x, distance, diagonal);
    Move more_y = distance_move(y, truth_y, truth.y - box.y, distance, diagonal);
    if (kind == BoxLoss::Ciou) {
      const double angle = angle_difference(box, truth);
      const double aspect = kAspectScale * square(angle);
      const double weight = aspect_weight(aspect, areas.both / areas.either);
      more_x.size += weight * 2 * kAspectScale * angle * box.height;
      more_y.size -= weight * 2 * kAspectScale * angle * box.width;
    }
    horizontal =
        apart ? more_x : Move{horizontal.centre + more_x.centre, horizontal.size + more_x.size};
    vertical = apart ? more_y : Move{vertical.centre + more_y.centre, vertical.size + more_y.size};
  }
  return {horizontal.centre, vertical.centre, horizontal.size, vertical.size};
}

}  // namespace tessera::engine
