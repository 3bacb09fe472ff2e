#include "engine/detection/box_confusion.h"

#include <vector>

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::BoxConfusion;
using engine::FoundBox;
using engine::PixelBox;
using engine::TrueBox;

constexpr PixelBox kHere = {10, 10, 20, 20};
constexpr PixelBox kNearby = {12, 10, 20, 20};   // covers 18 x 20 of it: IoU 360 / 440
constexpr PixelBox kFurther = {15, 10, 20, 20};  // 15 x 20: IoU 300 / 500
constexpr PixelBox kHalfOff = {17, 10, 20, 20};  // 13 x 20: IoU 260 / 540, too little
constexpr PixelBox kAnother = {100, 100, 20, 20};
constexpr double kScore = 0.25;

TrueBox object(Index image, Index label, const PixelBox& box, bool crowd = false) {
  return {image, label, box, box.width * box.height, crowd};
}

BoxConfusion confusion(const std::vector<TrueBox>& truth,
                       const std::vector<FoundBox>& found,
                       Index classes) {
  BoxConfusion counts = engine::empty_confusion(classes);
  add_boxes(counts, truth, found, judge_boxes(truth, found, classes), kScore);
  return counts;
}

}  // namespace

TEST_CASE("boxes of the right class are on the diagonal, others beside it or on background") {
  const std::vector<TrueBox> truth{object(0, 0, kHere),      // found
                                   object(0, 1, kAnother),   // taken for class 0
                                   object(1, 1, kHere),      // not found
                                   object(2, 0, kAnother)};  // its box has too low a score
  const std::vector<FoundBox> found{{0, 0, kNearby, 0.9},
                                    {0, 0, kAnother, 0.8},
                                    {1, 1, kHalfOff, 0.7},  // on background
                                    {2, 0, kAnother, 0.2},
                                    {3, 1, kHere, 0.25}};  // on an image without objects
  CHECK(confusion(truth, found, 2) == BoxConfusion{{1, 0, 1}, {1, 0, 1}, {0, 2, 0}});
}

TEST_CASE("a second box on an object is on background, whatever its class") {
  const std::vector<TrueBox> truth{object(0, 0, kHere)};
  const std::vector<FoundBox> found{{0, 1, kHere, 0.9}, {0, 0, kNearby, 0.5}, {0, 0, kHere, 0.4}};
  CHECK(confusion(truth, found, 2) == BoxConfusion{{1, 0, 0}, {0, 0, 0}, {1, 1, 0}});
}

TEST_CASE("of two wrong boxes the better one has the object, of two objects the nearer one") {
  const std::vector<TrueBox> truth{object(0, 0, kHere), object(0, 1, kFurther)};
  const std::vector<FoundBox> found{{0, 2, kNearby, 0.5}, {0, 3, kNearby, 0.9}};
  // kNearby has IoU 360 / 440 with kHere and 340 / 460 with kFurther: class 3 comes first.
  const BoxConfusion counts = confusion(truth, found, 4);
  CHECK(counts[0] == std::vector<Index>{0, 0, 0, 1, 0});
  CHECK(counts[1] == std::vector<Index>{0, 0, 1, 0, 0});
  CHECK(counts[4] == std::vector<Index>{0, 0, 0, 0, 0});
}

TEST_CASE("images are kept apart, and so are boxes given in any order") {
  const std::vector<TrueBox> truth{object(1, 0, kHere), object(0, 1, kHere)};
  const std::vector<FoundBox> found{{1, 1, kHere, 0.3}, {0, 0, kHere, 0.9}, {2, 0, kHere, 0.9}};
  CHECK(confusion(truth, found, 2) == BoxConfusion{{0, 1, 0}, {1, 0, 0}, {1, 0, 0}});
}

TEST_CASE("crowds, what is found in them, and classes that there are none of do not count") {
  const std::vector<TrueBox> truth{
      object(0, 0, {0, 0, 50, 50}, true), object(0, 0, kAnother), object(0, 7, kHere)};
  const std::vector<FoundBox> found{
      {0, 0, {0, 0, 50, 40}, 0.9}, {0, 0, kAnother, 0.8}, {0, 9, kHere, 0.8}};
  CHECK(confusion(truth, found, 1) == BoxConfusion{{1, 0}, {0, 0}});
}

TEST_CASE("rows add up to objects, columns to right and wrong boxes") {
  std::vector<TrueBox> truth;
  std::vector<FoundBox> found;
  for (Index i = 0; i < 60; ++i) {
    const PixelBox box = {static_cast<double>(i * 7 % 23), static_cast<double>(i * 5 % 19), 15, 15};
    const PixelBox moved = {box.left + static_cast<double>(i % 9), box.top, 15, 15};
    truth.push_back(object(i % 4, i * 3 % 5 % 3, box));
    found.push_back({i % 4, i % 3, moved, static_cast<double>(i % 10) / 10});
  }
  const auto judged = judge_boxes(truth, found, 3);
  BoxConfusion counts = engine::empty_confusion(3);
  add_boxes(counts, truth, found, judged, kScore);
  for (std::size_t label = 0; label < 3; ++label) {
    Index objects = 0;
    Index said = 0;
    for (std::size_t other = 0; other <= 3; ++other) {
      objects += counts[label][other];
      said += counts[other][label];
    }
    Index expected = 0;
    for (const FoundBox& box : found) {
      expected += box.label == static_cast<Index>(label) && box.score >= kScore ? 1 : 0;
    }
    CHECK(objects == judged[label].true_boxes());
    CHECK(said == expected);
  }
}
