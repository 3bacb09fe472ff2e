// Which cells get which objects, where the golden cases have no ties and no strange numbers.

#include "engine/detection/object_assignment.h"

#include <cmath>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include "engine/detection/detections.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Candidate;
using engine::CellPlace;
using engine::HeadSite;
using engine::kNoObject;
using engine::TargetBox;

constexpr Index kObjectClasses = 2;

HeadSite site_of(Index rows, Index cols, Index stride, Index most_boxes = 90) {
  return {partitioner::YoloxHead{.classes = kObjectClasses, .most_boxes = most_boxes},
          {5 + kObjectClasses, rows, cols},
          {3, rows * stride, cols * stride}};
}

// All candidates of an image of one head, which all say the same values.
struct Alike {
  std::vector<engine::PixelObject> objects;
  std::vector<CellPlace> places;
  std::vector<int> assigned;

  Alike(const HeadSite& site, const std::vector<TargetBox>& boxes, std::vector<double> values)
      : objects(objects_to_assign(site, boxes)),
        places(candidate_places(site, objects, {0, site.map.rows}, {0, site.map.cols})) {
    std::vector<Candidate> candidates;
    for (const CellPlace at : places) {
      candidates.push_back({&site, at, values});
    }
    assigned = assign_objects(objects, candidates);
  }
};

const std::vector<double> kSilent{0, 0, 0, 0, -4.6, -4.6, -4.6};

}  // namespace

TEST_CASE("candidates are the cells whose middle is nearer than one and a half strides") {
  const HeadSite site = site_of(8, 8, 10);
  // Centre at 45, 45 pixels: the middle of cell 4, 4.
  const auto objects = objects_to_assign(site, {{0, 45. / 80, 45. / 80, 0.1, 0.1}});
  const auto places = candidate_places(site, objects, {0, 8}, {0, 8});
  REQUIRE(places.size() == 9);
  CHECK(places.front() == CellPlace{3, 3});
  CHECK(places.back() == CellPlace{5, 5});
  // Centre on a corner of cells: middles are half a stride and one and a half away, which is not
  // nearer.
  const auto on_corner = objects_to_assign(site, {{0, 0.5, 0.5, 0.1, 0.1}});
  CHECK(candidate_places(site, on_corner, {0, 8}, {0, 8}).size() == 4);
  CHECK(candidate_places(site, on_corner, {4, 8}, {4, 8}) == std::vector{CellPlace{4, 4}});
  const auto outside = objects_to_assign(
      site, {{0, 7, 0.5, 0.1, 0.1}, {0, std::nan(""), 0.5, 1, 1}, {1, 1e300, -1e300, 1, 1}});
  CHECK(candidate_places(site, outside, {0, 8}, {0, 8}).empty());
}

TEST_CASE("only so many objects count, of classes that there are, and none that is ignored") {
  const HeadSite site = site_of(4, 4, 8, 2);
  const TargetBox box{1, 0.5, 0.5, 0.1, 0.1};
  TargetBox ignored = box;
  ignored.ignored = true;
  TargetBox unknown = box;
  unknown.label = kObjectClasses;
  CHECK(objects_to_assign(site, {ignored, unknown, box, box, box}).size() == 2);
}

TEST_CASE("of cells and objects that cost the same the first ones count") {
  const HeadSite site = site_of(6, 6, 8);
  // On a corner of cells: four candidates, all of which have as much in common with it.
  const TargetBox box{0, 0.5, 0.5, 0.02, 0.02};
  const Alike one(site, {box}, {0.5, 0.5, std::log(9), std::log(9), 0, 0, 0});
  CHECK(one.assigned == std::vector<int>{0, kNoObject, kNoObject, kNoObject});
  const Alike two(site, {box, box}, {0.5, 0.5, std::log(9), std::log(9), 0, 0, 0});
  CHECK(two.assigned == std::vector<int>{0, kNoObject, kNoObject, kNoObject});
}

TEST_CASE("an object gets a cell though none has anything in common with it") {
  const HeadSite site = site_of(6, 6, 8);
  std::vector<double> far = kSilent;
  far[0] = 100;
  const Alike found(site, {{1, 0.4, 0.4, 0.1, 0.1}}, far);
  CHECK(std::count(found.assigned.begin(), found.assigned.end(), 0) == 1);
}

TEST_CASE("values that are not finite hang nothing") {
  const HeadSite site = site_of(6, 6, 8);
  const std::vector<TargetBox> boxes{{1, 0.4, 0.4, 0.3, 0.3}, {0, 0.6, 0.6, 0.3, 0.2}};
  for (const double strange : {std::nan(""),
                               std::numeric_limits<double>::infinity(),
                               -std::numeric_limits<double>::infinity(),
                               1e300}) {
    for (std::size_t channel = 0; channel < kSilent.size(); ++channel) {
      std::vector<double> values = kSilent;
      values[channel] = strange;
      const Alike found(site, boxes, values);
      CHECK(found.assigned.size() == found.places.size());
    }
  }
  const Alike none(site, {}, kSilent);
  CHECK(none.assigned.empty());
}

TEST_CASE("a [yolox] finds a box of the likeliest class, in pixels of its stride") {
  const HeadSite site = site_of(2, 2, 8);
  std::vector<float> values(static_cast<std::size_t>(site.map.volume()), -20);
  const auto say = [&](Index channel, float value) {
    values[static_cast<std::size_t>(channel * 4 + 3)] = value;  // cell (1, 1)
  };
  say(0, 0.25F);
  say(1, -0.5F);
  say(2, 0);
  say(3, std::log(0.5F));
  say(4, 20);
  say(5, 1);
  say(6, 2);
  const auto found = engine::detections({site}, {values}, {.least_score = 0.5});
  REQUIRE(found.size() == 1);
  CHECK(found[0].label == 1);
  CHECK(found[0].score == doctest::Approx(1 / (1 + std::exp(-2.0))));
  CHECK(found[0].box.x == doctest::Approx(1.25 / 2));
  CHECK(found[0].box.y == doctest::Approx(0.5 / 2));
  CHECK(found[0].box.width == doctest::Approx(0.5));
  CHECK(found[0].box.height == doctest::Approx(0.25));
}
