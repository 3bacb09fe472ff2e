#include "engine/detection/judged_boxes.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

namespace tessera::engine {

namespace {

constexpr Index kMostCocoBoxes = 100;  // of an image and a class, those of the highest scores

// From, up to.
constexpr std::array<std::pair<double, double>, kBoxSizes> kSizeBounds = {
    {{0, 1e10}, {0, 32.0 * 32}, {32.0 * 32, 96.0 * 96}, {96.0 * 96, 1e10}}};

bool is_outside(double area, std::size_t size) {
  return area < kSizeBounds[size].first || area > kSizeBounds[size].second;
}

// `pixel` is 1 where coordinates name pixels that belong to the box, as VOC's do, else 0.
double common_area(const PixelBox& a, const PixelBox& b, double pixel) {
  const double width = std::min(a.left + a.width, b.left + b.width) - std::max(a.left, b.left);
  const double height = std::min(a.top + a.height, b.top + b.height) - std::max(a.top, b.top);
  return width + pixel <= 0 || height + pixel <= 0 ? 0 : (width + pixel) * (height + pixel);
}

double area_of(const PixelBox& box, double pixel) {
  return (box.width + pixel) * (box.height + pixel);
}

// IoU; for a crowd, the part of the found box that lies in it.
double coco_iou(const PixelBox& found, const TrueBox& truth) {
  const double both = common_area(found, truth.box, 0);
  const double of_found = area_of(found, 0);
  const double all = truth.crowd ? of_found : of_found + area_of(truth.box, 0) - both;
  return all > 0 ? both / all : 0;
}

double iou_of_areas(const PixelBox& found, const PixelBox& truth, double pixel) {
  const double both = common_area(found, truth, pixel);
  const double all = area_of(found, pixel) + area_of(truth, pixel) - both;
  return all > 0 ? both / all : 0;
}

// The boxes of one class on one image, those that were found by falling score.
class ImageJudge {
 public:
  ImageJudge(const std::vector<const TrueBox*>& truth, const std::vector<const FoundBox*>& found)
      : truth_(truth), found_(found), judged_(found.size()) {
    for (std::size_t i = 0; i < found.size(); ++i) {
      judged_[i].score = found[i]->score;
      judged_[i].rank = static_cast<std::int32_t>(i);
    }
  }

  // `all_truth` and `all_found` are the lists that boxes are numbered by.
  std::vector<JudgedBox> run(const std::vector<TrueBox>& all_truth,
                             const std::vector<FoundBox>& all_found) {
    measure();
    for (std::size_t size = 0; size < kBoxSizes; ++size) {
      judge_size(size);
    }
    judge_greedily(1, &JudgedBox::voc);
    const auto objects = judge_greedily(0, &JudgedBox::darknet);
    for (std::size_t i = 0; i < found_.size(); ++i) {
      judged_[i].found = static_cast<std::int32_t>(found_[i] - all_found.data());
      judged_[i].object =
          objects[i] ? static_cast<std::int32_t>(truth_[*objects[i]] - all_truth.data()) : -1;
    }
    return std::move(judged_);
  }

 private:
  [[nodiscard]] std::size_t coco_count() const {
    return std::min(found_.size(), static_cast<std::size_t>(kMostCocoBoxes));
  }

  void measure() {
    for (std::size_t i = 0; i < coco_count(); ++i) {
      for (const TrueBox* truth : truth_) {
        ious_.push_back(coco_iou(found_[i]->box, *truth));
      }
    }
  }
  [[nodiscard]] double measured(std::size_t found, std::size_t truth) const {
    return ious_[found * truth_.size() + truth];
  }

  // Those that count first, each kind in its order.
  void judge_size(std::size_t size) {
    std::vector<std::size_t> order;
    std::vector<bool> ignored(truth_.size());
    for (const bool wanted : {false, true}) {
      for (std::size_t i = 0; i < truth_.size(); ++i) {
        ignored[i] = truth_[i]->crowd || is_outside(truth_[i]->area, size);
        if (ignored[i] == wanted) {
          order.push_back(i);
        }
      }
    }
    const std::array<double, kCocoThresholds> thresholds = coco_thresholds();
    for (std::size_t threshold = 0; threshold < kCocoThresholds; ++threshold) {
      const auto bit = static_cast<std::uint16_t>(1U << threshold);
      std::vector<bool> taken(truth_.size());
      for (std::size_t i = 0; i < coco_count(); ++i) {
        const std::optional<std::size_t> match =
            best_match(i, order, ignored, taken, thresholds[threshold]);
        if (match) {
          taken[*match] = true;
          judged_[i].matched[size] |= bit;
        }
        if (match ? ignored[*match] : is_outside(area_of(found_[i]->box, 0), size)) {
          judged_[i].ignored[size] |= bit;
        }
      }
    }
  }

  // The box with the highest IoU, of those that are left; one that does not count only where no
  // other is left.
  [[nodiscard]] std::optional<std::size_t> best_match(std::size_t found,
                                                      const std::vector<std::size_t>& order,
                                                      const std::vector<bool>& ignored,
                                                      const std::vector<bool>& taken,
                                                      double threshold) const {
    constexpr double kAlmostOne = 1 - 1e-10;
    double best = std::min(threshold, kAlmostOne);
    std::optional<std::size_t> match;
    for (const std::size_t i : order) {
      if (taken[i] && !truth_[i]->crowd) {
        continue;
      }
      if (match && !ignored[*match] && ignored[i]) {
        break;
      }
      if (measured(found, i) >= best) {
        best = measured(found, i);
        match = i;
      }
    }
    return match;
  }

  // Each box belongs to the object with the highest IoU; where that is taken, it is a false
  // positive. Returns the object of each true positive.
  std::vector<std::optional<std::size_t>> judge_greedily(double pixel,
                                                         JudgedBox::Match JudgedBox::*match_of) {
    std::vector<std::optional<std::size_t>> objects(found_.size());
    std::vector<bool> taken(truth_.size());
    for (std::size_t i = 0; i < found_.size(); ++i) {
      double best = kPlainIou;
      std::optional<std::size_t> match;
      for (std::size_t t = 0; t < truth_.size(); ++t) {
        const double iou = iou_of_areas(found_[i]->box, truth_[t]->box, pixel);
        if (iou > best) {
          best = iou;
          match = t;
        }
      }
      if (match && truth_[*match]->crowd) {
        judged_[i].*match_of = JudgedBox::Match::Ignored;
      } else if (match && !taken[*match]) {
        taken[*match] = true;
        objects[i] = match;
        judged_[i].*match_of = JudgedBox::Match::TruePositive;
      }
    }
    return objects;
  }

  const std::vector<const TrueBox*>& truth_;
  const std::vector<const FoundBox*>& found_;
  std::vector<JudgedBox> judged_;
  std::vector<double> ious_;  // [found][truth]
};

struct ImageBoxes {
  std::vector<const TrueBox*> truth;
  std::vector<const FoundBox*> found;
};

}  // namespace

std::array<double, kCocoThresholds> coco_thresholds() {
  constexpr double kFirst = 0.5;
  constexpr double kLast = 0.95;
  std::array<double, kCocoThresholds> thresholds = {};
  const double step = (kLast - kFirst) / (kCocoThresholds - 1);
  for (std::size_t i = 0; i < kCocoThresholds; ++i) {
    thresholds[i] = kFirst + static_cast<double>(i) * step;
  }
  thresholds.back() = kLast;
  return thresholds;
}

double plain_iou(const PixelBox& a, const PixelBox& b) {
  return iou_of_areas(a, b, 0);
}

Index pairs_of(const std::vector<TrueBox>& truth, const std::vector<FoundBox>& found) {
  std::map<std::pair<Index, Index>, Index> objects;  // by image and class
  for (const TrueBox& box : truth) {
    ++objects[{box.image, box.label}];
  }
  Index pairs = 0;
  for (const FoundBox& box : found) {
    const auto of_box = objects.find({box.image, box.label});
    pairs += of_box == objects.end() ? 0 : of_box->second;
  }
  return pairs;
}

std::vector<JudgedClass> judge_boxes(const std::vector<TrueBox>& truth,
                                     const std::vector<FoundBox>& found,
                                     Index classes) {
  std::vector<std::map<Index, ImageBoxes>> by_class(static_cast<std::size_t>(classes));
  const auto is_known = [&](Index label) { return label >= 0 && label < classes; };
  for (const TrueBox& box : truth) {
    if (is_known(box.label)) {
      by_class[static_cast<std::size_t>(box.label)][box.image].truth.push_back(&box);
    }
  }
  for (const FoundBox& box : found) {
    if (is_known(box.label)) {
      by_class[static_cast<std::size_t>(box.label)][box.image].found.push_back(&box);
    }
  }
  std::vector<JudgedClass> judged(by_class.size());
  for (std::size_t label = 0; label < judged.size(); ++label) {
    for (auto& [image, boxes] : by_class[label]) {
      std::stable_sort(boxes.found.begin(),
                       boxes.found.end(),
                       [](const FoundBox* a, const FoundBox* b) { return a->score > b->score; });
      for (const TrueBox* box : boxes.truth) {
        for (std::size_t size = 0; size < kBoxSizes; ++size) {
          judged[label].truth[size] += box->crowd || is_outside(box->area, size) ? 0 : 1;
        }
      }
      const std::vector<JudgedBox> of_image =
          ImageJudge(boxes.truth, boxes.found).run(truth, found);
      judged[label].boxes.insert(judged[label].boxes.end(), of_image.begin(), of_image.end());
    }
  }
  return judged;
}

void append(std::vector<JudgedClass>& judged, const std::vector<JudgedClass>& more) {
  judged.resize(std::max(judged.size(), more.size()));
  for (std::size_t label = 0; label < more.size(); ++label) {
    JudgedClass& to = judged[label];
    to.boxes.insert(to.boxes.end(), more[label].boxes.begin(), more[label].boxes.end());
    for (std::size_t size = 0; size < kBoxSizes; ++size) {
      to.truth[size] += more[label].truth[size];
    }
  }
}

}  // namespace tessera::engine
