#include <algorithm>
#include <cmath>

#include "engine/detection/head_cells.h"
#include "engine/ops/activation/softmax.h"

namespace tessera::engine {

using partitioner::Anchor;
using partitioner::kBoxValues;
using partitioner::RegionHead;

namespace {

class RegionJudge {
 public:
  RegionJudge(const RegionHead& head, const HeadSite& site, HeadCells& cells)
      : head_(head),
        site_(site),
        cells_(cells),
        rows_(static_cast<double>(site.map.rows)),
        cols_(static_cast<double>(site.map.cols)) {}

  void run(const std::vector<Box>& all, Index images_seen) {
    const auto count = std::min(all.size(), static_cast<std::size_t>(head_.most_boxes));
    const std::vector<Box> objects(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count));
    const bool warms_up = images_seen < partitioner::kAnchorWarmUpImages;
    for (Index box = 0; box < boxes(); ++box) {
      cells_.for_each([&](Place at) { judge_background(box, at, objects, warms_up); });
    }
    for (const Box& object : objects) {
      const Place at = cell_of(object, site_.map);
      if (cells_.holds(at) && object.label >= 0 && object.label < head_.classes) {
        judge_object(object, at);
      }
    }
  }

 private:
  [[nodiscard]] Index boxes() const { return static_cast<Index>(head_.anchors.size()); }
  [[nodiscard]] Index channel(Index box, Index entry) const {
    return box * (kBoxValues + head_.classes) + entry;
  }
  [[nodiscard]] double value(Index box, Index entry, Place at) const {
    return cells_.value(channel(box, entry), at);
  }
  [[nodiscard]] double& delta(Index box, Index entry, Place at) {
    return cells_.delta(channel(box, entry), at);
  }

  [[nodiscard]] UnitBox anchor_box(Index box) const {
    const Anchor& size = head_.anchors[static_cast<std::size_t>(box)];
    return {0, 0, size.width / cols_, size.height / rows_};
  }

  [[nodiscard]] UnitBox prediction(Index box, Place at) const {
    return box_of_anchor(
        head_,
        site_,
        head_.anchors[static_cast<std::size_t>(box)],
        at,
        {value(box, 0, at), value(box, 1, at), value(box, 2, at), value(box, 3, at)});
  }

  void judge_background(Index box, Place at, const std::vector<Box>& objects, bool warms_up) {
    const UnitBox predicted = prediction(box, at);
    double best = 0;
    for (const Box& object : objects) {
      best = std::max(best, iou(predicted, unit_box(object)));
    }
    delta(box, kObjectness, at) =
        best > head_.threshold ? 0 : -head_.no_object_scale * value(box, kObjectness, at);
    if (warms_up) {
      constexpr double kWarmUpScale = 0.01;
      UnitBox anchor = anchor_box(box);
      anchor.x = (static_cast<double>(at.col) + 0.5) / cols_;
      anchor.y = (static_cast<double>(at.row) + 0.5) / rows_;
      judge_box(box, at, anchor, kWarmUpScale);
    }
  }

  // Assigns the deltas of x, y, width and height.
  void judge_box(Index box, Place at, const UnitBox& target, double scale) {
    const UnitBox size = anchor_box(box);
    delta(box, 0, at) =
        scale * (target.x * cols_ - static_cast<double>(at.col) - value(box, 0, at));
    delta(box, 1, at) =
        scale * (target.y * rows_ - static_cast<double>(at.row) - value(box, 1, at));
    delta(box, 2, at) = scale * (std::log(target.width / size.width) - value(box, 2, at));
    delta(box, 3, at) = scale * (std::log(target.height / size.height) - value(box, 3, at));
  }

  void judge_object(const Box& object, Place at) {
    const UnitBox wanted{0, 0, object.width, object.height};
    double best_iou = 0;
    Index best = 0;
    for (Index box = 0; box < boxes(); ++box) {
      UnitBox size = head_.match_anchors ? anchor_box(box) : prediction(box, at);
      size.x = 0;
      size.y = 0;
      const double common = iou(size, wanted);
      if (common > best_iou) {
        best_iou = common;
        best = box;
      }
    }
    const double reached = iou(prediction(best, at), unit_box(object));
    const double area = static_cast<double>(object.width) * object.height;
    judge_box(best, at, unit_box(object), head_.coordinate_scale * (2 - area));
    const double target = head_.rescore ? reached : 1;
    delta(best, kObjectness, at) = head_.object_scale * (target - value(best, kObjectness, at));
    judge_class(best, at, object.label);
  }

  void judge_class(Index box, Place at, int label) {
    const bool others_too = head_.softmax || delta(box, kBoxValues, at) == 0;
    for (Index each = 0; each < head_.classes; ++each) {
      if (others_too || each == label) {
        const double target = each == label ? 1 : 0;
        delta(box, kBoxValues + each, at) =
            head_.class_scale * (target - value(box, kBoxValues + each, at));
      }
    }
  }

  const RegionHead& head_;
  const HeadSite& site_;
  HeadCells& cells_;
  double rows_ = 1;
  double cols_ = 1;
};

}  // namespace

void judge(const RegionHead& head,
           const HeadSite& site,
           const std::vector<Box>& objects,
           Index images_seen,
           HeadCells& cells) {
  RegionJudge(head, site, cells).run(objects, images_seen);
}

void activate(const RegionHead& head, std::vector<double>& values) {
  const Index size = kBoxValues + head.classes;
  for (Index first = 0; first < static_cast<Index>(values.size()); first += size) {
    double* box = values.data() + first;
    for (const Index entry : {Index{0}, Index{1}, kObjectness}) {
      box[entry] = logistic(box[entry]);
    }
    double* classes = box + kBoxValues;
    if (!head.softmax) {
      std::transform(classes, classes + head.classes, classes, logistic);
    } else {
      softmax_forward({head.classes}, static_cast<const double*>(classes), classes);
    }
  }
}

void activate_backward(const RegionHead& head,
                       const std::vector<double>& values,
                       std::vector<double>& gradient) {
  const Index size = kBoxValues + head.classes;
  for (Index first = 0; first < static_cast<Index>(values.size()); first += size) {
    const double* box = values.data() + first;
    double* back = gradient.data() + first;
    for (Index entry = 0; entry < size; ++entry) {
      const bool is_logistic =
          entry < 2 || entry == kObjectness || (entry >= kBoxValues && !head.softmax);
      back[entry] *= is_logistic ? box[entry] * (1 - box[entry]) : 1;
    }
    if (head.softmax) {
      softmax_gradient_in_place(box + kBoxValues, back + kBoxValues, head.classes);
    }
  }
}

}  // namespace tessera::engine
