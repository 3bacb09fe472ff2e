#include <algorithm>
#include <cmath>

#include "engine/detection/head_cells.h"

namespace tessera::engine {

using partitioner::Anchor;
using partitioner::BoxLoss;
using partitioner::kBoxValues;
using partitioner::YoloHead;

namespace {

double finite_or_zero(double value) {
  return std::isfinite(value) ? value : 0;
}

class YoloJudge {
 public:
  YoloJudge(const YoloHead& head, const HeadSite& site, HeadCells& cells, HeadCost& cost)
      : head_(head), site_(site), cells_(cells), cost_(cost) {}

  void run(const std::vector<Box>& objects) {
    const std::vector<Box> known = objects_of_classes(objects);
    for (Index box = 0; box < boxes(); ++box) {
      cells_.for_each([&](Place at) { judge_background(box, at, known); });
    }
    for (const Box& object : known) {
      judge_object(object);
    }
    if (head_.iou_threshold < 1) {
      for (Index box = 0; box < boxes(); ++box) {
        cells_.for_each([&](Place at) { average_box(box, at); });
      }
    }
  }

 private:
  [[nodiscard]] Index boxes() const { return static_cast<Index>(head_.mask.size()); }
  [[nodiscard]] Index first(Index box) const { return box * (kBoxValues + head_.classes); }
  [[nodiscard]] Index of_class(Index box, Index label) const {
    return first(box) + kBoxValues + label;
  }
  [[nodiscard]] double value(Index box, Index entry, Place at) const {
    return cells_.value(first(box) + entry, at);
  }
  [[nodiscard]] double& delta(Index box, Index entry, Place at) {
    return cells_.delta(first(box) + entry, at);
  }
  [[nodiscard]] double weight(int label) const {
    return head_.class_weights.empty() ? 1 : head_.class_weights[static_cast<std::size_t>(label)];
  }
  [[nodiscard]] Anchor anchor(Index box) const {
    return head_.anchors[static_cast<std::size_t>(head_.mask[static_cast<std::size_t>(box)])];
  }

  // The first so many, without those of classes that the head does not have.
  [[nodiscard]] std::vector<Box> objects_of_classes(const std::vector<Box>& objects) const {
    std::vector<Box> known;
    for (std::size_t i = 0; i < objects.size() && static_cast<Index>(i) < head_.most_boxes; ++i) {
      if (objects[i].label >= 0 && objects[i].label < head_.classes) {
        known.push_back(objects[i]);
      }
    }
    return known;
  }

  [[nodiscard]] UnitBox prediction(Index box, Place at) const {
    return box_of_anchor(
        head_,
        site_,
        anchor(box),
        at,
        {value(box, 0, at), value(box, 1, at), value(box, 2, at), value(box, 3, at)});
  }

  // Whether the box says any class: Darknet asks for more than a quarter.
  [[nodiscard]] bool says_class(Index box, Place at) const {
    constexpr double kSaid = 0.25;
    for (Index label = 0; label < head_.classes; ++label) {
      if (cells_.value(of_class(box, label), at) > kSaid) {
        return true;
      }
    }
    return false;
  }

  // As if nothing were there, but for boxes that overlap with an object.
  void judge_background(Index box, Place at, const std::vector<Box>& objects) {
    const UnitBox predicted = prediction(box, at);
    double best = 0;
    const Box* most_like = nullptr;
    for (const Box& object : objects) {
      const double common = iou(predicted, unit_box(object));
      if (common > best) {
        best = common;
        most_like = &object;
      }
    }
    const double objectness = value(box, kObjectness, at);
    double& to_objectness = delta(box, kObjectness, at);
    to_objectness = head_.object_normalizer * -objectness;
    if (best > head_.ignore_threshold && says_class(box, at)) {
      to_objectness = head_.objectness_smooth
                          ? std::max(to_objectness, head_.object_normalizer * (best - objectness))
                          : 0;
    }
    if (most_like != nullptr && best > head_.truth_threshold) {
      take_over(box, at, *most_like, best);
    }
  }

  void take_over(Index box, Place at, const Box& object, double best) {
    const double target = head_.objectness_smooth ? best * best : 1;
    delta(box, kObjectness, at) = head_.object_normalizer * (target - value(box, kObjectness, at));
    judge_class(box, at, object.label);
    if (head_.objectness_smooth) {
      const Index channel = of_class(box, object.label);
      cells_.delta(channel, at) = weight(object.label) * (target - cells_.value(channel, at));
    }
    judge_box(box, at, object);
  }

  void judge_object(const Box& object) {
    const Place at = cell_of(object, site_.map);
    if (!cells_.holds(at)) {
      return;
    }
    const int best = best_anchor(object);
    const auto own = std::find(head_.mask.begin(), head_.mask.end(), best);
    if (own != head_.mask.end()) {
      match(own - head_.mask.begin(), at, object);
    }
    for (Index box = 0; box < boxes() && head_.iou_threshold < 1; ++box) {
      const int number = head_.mask[static_cast<std::size_t>(box)];
      const bool first_of_its_kind =
          std::find(head_.mask.begin(), head_.mask.end(), number) - head_.mask.begin() == box;
      if (number != best && first_of_its_kind &&
          iou_of_kind(head_.iou_threshold_kind, at_origin(anchor(box)), size_of(object)) >
              head_.iou_threshold) {
        match(box, at, object);
      }
    }
  }

  [[nodiscard]] UnitBox at_origin(const Anchor& size) const {
    return {0,
            0,
            size.width / static_cast<double>(site_.image.cols),
            size.height / static_cast<double>(site_.image.rows)};
  }
  static UnitBox size_of(const Box& object) { return {0, 0, object.width, object.height}; }

  [[nodiscard]] int best_anchor(const Box& object) const {
    double best = 0;
    int found = 0;
    for (std::size_t i = 0; i < head_.anchors.size(); ++i) {
      const double common = iou(at_origin(head_.anchors[i]), size_of(object));
      if (common > best) {
        best = common;
        found = static_cast<int>(i);
      }
    }
    return found;
  }

  void match(Index box, Place at, const Box& object) {
    if (head_.box_loss != BoxLoss::SquaredError) {
      const BoxLoss kind = head_.box_loss == BoxLoss::Giou ? BoxLoss::Giou : BoxLoss::Iou;
      cost_.iou_losses +=
          head_.iou_normalizer * (1 - iou_of_kind(kind, prediction(box, at), unit_box(object)));
      ++cost_.matches;
    }
    judge_box(box, at, object);
    double& to_objectness = delta(box, kObjectness, at);
    if (!head_.objectness_smooth || to_objectness == 0) {
      to_objectness =
          weight(object.label) * head_.object_normalizer * (1 - value(box, kObjectness, at));
    }
    judge_class(box, at, object.label);
  }

  // Adds to the deltas of x, y, width and height.
  void judge_box(Index box, Place at, const Box& object) {
    const double factor = head_.iou_normalizer * weight(object.label);
    const UnitBox moves = head_.box_loss == BoxLoss::SquaredError
                              ? squared_error_delta(box, at, object, factor)
                              : iou_delta(box, at, object, factor);
    delta(box, 0, at) += finite_or_zero(moves.x);
    delta(box, 1, at) += finite_or_zero(moves.y);
    delta(box, 2, at) += finite_or_zero(moves.width);
    delta(box, 3, at) += finite_or_zero(moves.height);
  }

  [[nodiscard]] UnitBox squared_error_delta(Index box,
                                            Place at,
                                            const Box& object,
                                            double factor) const {
    const Anchor size = anchor(box);
    const double width = object.width * static_cast<double>(site_.image.cols) / size.width;
    const double height = object.height * static_cast<double>(site_.image.rows) / size.height;
    const double scale = factor * (2 - static_cast<double>(object.width) * object.height);
    return {
        scale * (object.centre_x * static_cast<double>(site_.map.cols) -
                 static_cast<double>(at.col) - value(box, 0, at)),
        scale * (object.centre_y * static_cast<double>(site_.map.rows) -
                 static_cast<double>(at.row) - value(box, 1, at)),
        scale * ((head_.new_coords ? std::sqrt(width / 4) : std::log(width)) - value(box, 2, at)),
        scale *
            ((head_.new_coords ? std::sqrt(height / 4) : std::log(height)) - value(box, 3, at))};
  }

  [[nodiscard]] UnitBox iou_delta(Index box, Place at, const Box& object, double factor) const {
    UnitBox predicted = prediction(box, at);
    predicted.width = predicted.width == 0 ? 1 : predicted.width;
    predicted.height = predicted.height == 0 ? 1 : predicted.height;
    UnitBox moves = darknet_iou_delta(head_.box_loss, predicted, unit_box(object));
    if (!head_.new_coords) {
      moves.width *= std::exp(value(box, 2, at));
      moves.height *= std::exp(value(box, 3, at));
    }
    const auto limited = [&](double move) {
      return std::clamp(finite_or_zero(factor * move), -head_.most_delta, head_.most_delta);
    };
    return {limited(moves.x), limited(moves.y), limited(moves.width), limited(moves.height)};
  }

  void judge_class(Index box, Place at, int label) {
    const auto target = [&](Index each) {
      const double plain = each == label ? 1 : 0;
      return plain * (1 - head_.label_smoothing) + 0.5 * head_.label_smoothing;
    };
    const Index own = of_class(box, label);
    if (cells_.delta(own, at) != 0) {  // the box of another object already
      cells_.delta(own, at) = weight(label) * (target(label) - cells_.value(own, at));
      return;
    }
    // The gradient of the focal loss (Lin et al. 2017) with exponent 2 and weight 1/2, as Darknet
    // has it.
    const double said = cells_.value(own, at) + 1e-15;
    const double focus =
        head_.focal_loss ? -0.5 * (1 - said) * (2 * said * std::log(said) + said - 1) : 1;
    for (Index each = 0; each < head_.classes; ++each) {
      const Index channel = of_class(box, each);
      const double wanted = head_.focal_loss ? (each == label ? 1 : 0) : target(each);
      cells_.delta(channel, at) = focus * (wanted - cells_.value(channel, at));
    }
    if (!head_.class_weights.empty() && !head_.focal_loss) {
      cells_.delta(own, at) *= weight(label) * head_.class_normalizer;
    }
  }

  // A box that several objects of different classes want moves as their mean says.
  void average_box(Index box, Place at) {
    if (delta(box, kObjectness, at) == 0) {
      return;
    }
    double classes = 0;
    for (Index label = 0; label < head_.classes; ++label) {
      classes += cells_.delta(of_class(box, label), at) > 0 ? 1 : 0;
    }
    for (Index entry = 0; entry < kObjectness && classes > 0; ++entry) {
      delta(box, entry, at) /= classes;
    }
  }

  const YoloHead& head_;
  const HeadSite& site_;
  HeadCells& cells_;
  HeadCost& cost_;
};

}  // namespace

void judge(const YoloHead& head,
           const HeadSite& site,
           const std::vector<Box>& objects,
           HeadCells& cells,
           HeadCost& cost) {
  YoloJudge(head, site, cells, cost).run(objects);
}

void activate(const YoloHead& head, std::vector<double>& values) {
  const Index size = kBoxValues + head.classes;
  for (Index c = 0; c < static_cast<Index>(values.size()); ++c) {
    double& value = values[static_cast<std::size_t>(c)];
    const Index entry = c % size;
    if (!head.new_coords && (entry < 2 || entry >= kObjectness)) {
      value = logistic(value);
    }
    if (entry < 2) {
      value = value * head.scale_xy - 0.5 * (head.scale_xy - 1);
    }
  }
}

void activate_backward(const YoloHead& head,
                       const std::vector<double>& values,
                       std::vector<double>& gradient) {
  const Index size = kBoxValues + head.classes;
  for (Index c = 0; c < static_cast<Index>(values.size()); ++c) {
    const Index entry = c % size;
    double& back = gradient[static_cast<std::size_t>(c)];
    const double stretch = entry < 2 ? head.scale_xy : 1;
    back *= stretch;
    if (!head.new_coords && (entry < 2 || entry >= kObjectness)) {
      const double said = (values[static_cast<std::size_t>(c)] + 0.5 * (stretch - 1)) / stretch;
      back *= said * (1 - said);
    }
  }
}

}  // namespace tessera::engine
