#include "engine/data/inspection/anchor_clusters.h"

#include <algorithm>

#include "tests/engine/data/samples.h"
#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "engine/base/random.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

using engine::BoxSides;
using partitioner::Anchor;

namespace {

// `count` sizes around each of a few.
std::vector<BoxSides> scattered(const std::vector<BoxSides>& centres, int count) {
  std::vector<BoxSides> sizes;
  for (std::size_t i = 0; i < centres.size(); ++i) {
    for (int k = 0; k < count; ++k) {
      const auto draw = [&](std::uint64_t which) {
        return 0.9 + 0.2 * engine::random_uniform(5, i, static_cast<std::uint64_t>(k), which);
      };
      sizes.push_back({centres[i].width * draw(0), centres[i].height * draw(1)});
    }
  }
  return sizes;
}

}  // namespace

TEST_CASE("anchors are the sizes that boxes cluster around, by area") {
  const std::vector<BoxSides> centres{{10, 20}, {60, 30}, {30, 200}, {300, 250}};
  const std::vector<BoxSides> sizes =
      scattered({centres[2], centres[0], centres[3], centres[1]}, 50);
  const std::vector<Anchor> anchors = engine::cluster_anchors(sizes, 4);
  REQUIRE(anchors.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(anchors[i].width == doctest::Approx(centres[i].width).epsilon(0.05));
    CHECK(anchors[i].height == doctest::Approx(centres[i].height).epsilon(0.05));
  }
  CHECK(engine::mean_best_iou(sizes, anchors) > 0.85);
}

TEST_CASE("anchors do not depend on the order of boxes") {
  std::vector<BoxSides> sizes = scattered({{10, 20}, {60, 30}, {30, 100}}, 40);
  const std::vector<Anchor> before = engine::cluster_anchors(sizes, 6);
  std::reverse(sizes.begin(), sizes.end());
  std::rotate(sizes.begin(), sizes.begin() + 37, sizes.end());
  CHECK(engine::cluster_anchors(sizes, 6) == before);
}

TEST_CASE("more anchors fit better, and as many as there are sizes fit exactly") {
  const std::vector<BoxSides> sizes = scattered({{10, 20}, {60, 30}}, 6);
  double last = 0;
  for (Index count = 1; count <= 12; ++count) {
    const double overlap = engine::mean_best_iou(sizes, engine::cluster_anchors(sizes, count));
    CHECK(overlap >= last - 0.01);
    last = overlap;
  }
  CHECK(last == doctest::Approx(1));
}

TEST_CASE("the overlap of two sizes is that of boxes with the same centre") {
  CHECK(engine::size_iou({10, 20}, {10, 20}) == 1);
  CHECK(engine::size_iou({10, 20}, {20, 10}) == doctest::Approx(100.0 / 300));
  CHECK(engine::size_iou({4, 4}, {2, 2}) == doctest::Approx(0.25));
}
