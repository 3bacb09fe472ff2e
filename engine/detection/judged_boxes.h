// Boxes that people have drawn and boxes that a network has found, and which of these are right: by
// COCO's rules, at all of its thresholds and sizes, and by those of VOC and of Darknet, from one
// pass over the IoUs of each image and class.

#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "engine/base/pixel_box.h"
#include "partitioner/base/region.h"

namespace tessera::engine {

// COCO's: IoUs that a true positive must reach, 0.50, 0.55 ... 0.95.
inline constexpr std::size_t kCocoThresholds = 10;
[[nodiscard]] std::array<double, kCocoThresholds> coco_thresholds();

// VOC's and Darknet's: a true positive has a higher IoU.
inline constexpr double kPlainIou = 0.5;

// COCO's: areas in pixels that are looked at.
enum class BoxSize { All, Small, Medium, Large };
inline constexpr std::size_t kBoxSizes = 4;

// A detection. By size, a bit for each of COCO's thresholds.
struct JudgedBox {
  double score = 0;
  std::int32_t rank = 0;  // by score among those of its image and class, from 0
  std::array<std::uint16_t, kBoxSizes> matched = {};
  std::array<std::uint16_t, kBoxSizes> ignored = {};
  enum class Match : std::uint8_t { FalsePositive, TruePositive, Ignored };
  Match voc = Match::FalsePositive;      // at kPlainIou
  Match darknet = Match::FalsePositive;  // likewise
  // Places in the lists that were judged: of the box, and of its object, -1 unless the box is a
  // true positive by Darknet's rule.
  std::int32_t found = 0;
  std::int32_t object = -1;
  friend bool operator==(const JudgedBox&, const JudgedBox&) = default;
};

struct JudgedClass {
  std::deque<JudgedBox> boxes;              // by image; of an image by score
  std::array<Index, kBoxSizes> truth = {};  // boxes to be found, crowds not counted
  [[nodiscard]] Index true_boxes() const { return truth[0]; }
};

// IoU of plain areas.
[[nodiscard]] double plain_iou(const PixelBox& a, const PixelBox& b);

// How many pairs of a box that was found and an object of its image and class there are: judging
// compares most of them.
[[nodiscard]] Index pairs_of(const std::vector<TrueBox>& truth, const std::vector<FoundBox>& found);
inline constexpr Index kMostPairs = Index{1} << 30U;  // some seconds

// By class; boxes of classes that are not from 0 to `classes` - 1 do not count.
[[nodiscard]] std::vector<JudgedClass> judge_boxes(const std::vector<TrueBox>& truth,
                                                   const std::vector<FoundBox>& found,
                                                   Index classes);

// Adds what was judged of other images of the same classes, in lists of their own.
void append(std::vector<JudgedClass>& judged, const std::vector<JudgedClass>& more);

}  // namespace tessera::engine
