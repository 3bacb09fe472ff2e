#include "engine/detection/average_precision.h"

#include <algorithm>
#include <span>

#include "engine/detection/precision_curve.h"

namespace tessera::engine {

namespace {

// The mean of the precisions at recalls of 0 to 1 in so many equal steps; 0 where a recall is not
// reached.
double mean_precision(const PrecisionCurve& curve, int steps) {
  const double step = 1.0 / steps;
  double sum = 0;
  for (int i = 0; i <= steps; ++i) {
    sum += curve.precision_at(i == steps ? 1 : i * step);
  }
  return sum / (steps + 1);
}

double area_under(const PrecisionCurve& curve) {
  double area = 0;
  double before = 0;
  for (std::size_t i = 0; i < curve.recalls.size(); ++i) {
    area += (curve.recalls[i] - before) * curve.precisions[i];
    before = curve.recalls[i];
  }
  return area;
}

struct CocoPoint {
  std::optional<double> precision;
  std::optional<double> recall;
};

CocoPoint coco_point(const JudgedClass& judged,
                     BoxSize of_size,
                     std::size_t threshold,
                     Index most) {
  const auto size = static_cast<std::size_t>(of_size);
  const Index true_boxes = judged.truth[size];
  if (true_boxes == 0) {
    return {};
  }
  const auto bit = static_cast<std::uint16_t>(1U << threshold);
  const PrecisionCurve curve = precision_curve(judged, true_boxes, [&](const JudgedBox& box) {
    if (box.rank >= most || (box.ignored[size] & bit) != 0) {
      return JudgedBox::Match::Ignored;
    }
    return (box.matched[size] & bit) != 0 ? JudgedBox::Match::TruePositive
                                          : JudgedBox::Match::FalsePositive;
  });
  constexpr int kRecallSteps = 100;
  return {mean_precision(curve, kRecallSteps), curve.recalls.empty() ? 0 : curve.recalls.back()};
}

// Means over classes and thresholds, of one size.
struct CocoMeans {
  std::optional<double> precision;
  std::optional<double> recall;
};

CocoMeans coco_means(std::span<const JudgedClass> judged, BoxSize size, Index most) {
  Mean precision;
  Mean recall;
  for (const JudgedClass& each : judged) {
    for (std::size_t threshold = 0; threshold < kCocoThresholds; ++threshold) {
      const CocoPoint point = coco_point(each, size, threshold, most);
      precision.add(point.precision);
      recall.add(point.recall);
    }
  }
  return {precision.value(), recall.value()};
}

}  // namespace

CocoFigures coco_figures(const std::vector<JudgedClass>& judged) {
  constexpr Index kMost = 100;
  constexpr std::size_t kAt75 = 5;
  CocoFigures figures;
  for (std::size_t threshold = 0; threshold < kCocoThresholds; ++threshold) {
    Mean mean;
    for (const JudgedClass& each : judged) {
      mean.add(coco_point(each, BoxSize::All, threshold, kMost).precision);
    }
    figures.ap_at_thresholds[threshold] = mean.value();
  }
  for (const JudgedClass& each : judged) {
    figures.ap_of_classes.push_back(coco_means(std::span(&each, 1), BoxSize::All, kMost).precision);
  }
  const CocoMeans all = coco_means(judged, BoxSize::All, kMost);
  const CocoMeans small = coco_means(judged, BoxSize::Small, kMost);
  const CocoMeans medium = coco_means(judged, BoxSize::Medium, kMost);
  const CocoMeans large = coco_means(judged, BoxSize::Large, kMost);
  figures.ap = all.precision;
  figures.ap_at_50 = figures.ap_at_thresholds[0];
  figures.ap_at_75 = figures.ap_at_thresholds[kAt75];
  figures.ap_small = small.precision;
  figures.ap_medium = medium.precision;
  figures.ap_large = large.precision;
  figures.recall_1 = coco_means(judged, BoxSize::All, 1).recall;
  figures.recall_10 = coco_means(judged, BoxSize::All, 10).recall;
  figures.recall_100 = all.recall;
  figures.recall_small = small.recall;
  figures.recall_medium = medium.recall;
  figures.recall_large = large.recall;
  return figures;
}

PlainFigures plain_figures(const std::vector<JudgedClass>& judged) {
  constexpr int kElevenPoints = 10;
  Mean eleven;
  Mean all;
  Mean darknet;
  PlainFigures figures;
  for (const JudgedClass& each : judged) {
    figures.darknet_of_classes.emplace_back();
    if (each.true_boxes() == 0) {
      continue;
    }
    const auto curve = [&](JudgedBox::Match JudgedBox::*match) {
      return precision_curve(
          each, each.true_boxes(), [&](const JudgedBox& box) { return box.*match; });
    };
    const PrecisionCurve voc = curve(&JudgedBox::voc);
    eleven.add(mean_precision(voc, kElevenPoints));
    all.add(area_under(voc));
    figures.darknet_of_classes.back() = area_under(curve(&JudgedBox::darknet));
    darknet.add(figures.darknet_of_classes.back());
  }
  figures.voc_11_points = eleven.value();
  figures.voc_all_points = all.value();
  figures.darknet = darknet.value();
  return figures;
}

}  // namespace tessera::engine
