#include "engine/detection/detections.h"

#include <vector>

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Detection;
using engine::detections;
using engine::HeadSite;

// One box in one cell, two classes: by the values of the channels.
std::vector<Detection> found_by(const engine::DetectorHead& head,
                                const std::vector<float>& values) {
  const HeadSite site{head, {static_cast<Index>(values.size()), 1, 1}, {3, 8, 8}};
  std::vector<Detection> found;
  add_boxes_of_head(site, values, 0.25, found);
  return found;
}

}  // namespace

TEST_CASE("a box of a grid counts by its score alone, since its shares may exceed 1") {
  const partitioner::GridHead head{.side = 1, .boxes = 1, .classes = 2};
  const auto found = found_by(head, {3.0F, 1.0F, 0.125F, 0.5F, 0.5F, 0.25F, 0.75F});
  REQUIRE(found.size() == 1);
  CHECK(found[0].label == 0);
  CHECK(found[0].score == 0.375);
  CHECK(found_by(head, {1.0F, 1.0F, 0.125F, 0.5F, 0.5F, 0.25F, 0.75F}).empty());
}

TEST_CASE("of boxes of one class that say the same the best is kept, of other classes each") {
  partitioner::RegionHead head;
  head.classes = 2;
  head.anchors = {{.width = 1, .height = 1}, {.width = 1, .height = 1}};
  const HeadSite site{head, {14, 1, 1}, {3, 8, 8}};
  const std::vector<float> values{0.5F, 0.5F, 0, 0, 0.5F, 1, 0, 0.5F, 0.5F, 0, 0, 1, 0.75F, 0.5F};
  const auto found = detections({site}, {values}, {});
  REQUIRE(found.size() == 2);
  CHECK(found[0] == Detection{{0.5, 0.5, 1, 1}, 0, 0.75});
  CHECK(found[1] == Detection{{0.5, 0.5, 1, 1}, 1, 0.5});
}
