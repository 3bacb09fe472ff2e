#include "engine/train/metrics/detection_metrics.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "engine/train/metrics/make_metric.h"
#include "partitioner/network/heads.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::DetectionMetrics;

partitioner::Network detector(Index side) {
  partitioner::Network network;
  network.image = {3, side, side};
  const partitioner::YoloHead head{
      .classes = 3, .anchors = {{3, 5}, {8, 6}, {15, 12}}, .mask = {0, 1, 2}};
  add_layer(network,
            partitioner::Convolution{.filters = head_channels(head), .size = 1, .stride = 2},
            {partitioner::kImage});
  add_layer(network, head, {0});
  return network;
}

// Every cell says an object of each class, a little less of one than of the one before.
engine::Outputs outputs_of(const partitioner::Network& network, Index images) {
  std::vector<float> values(static_cast<std::size_t>(images * network.shape(1).volume()));
  float value = 0.9F;
  for (float& each : values) {
    each = value;
    value = value > 0.4F ? value * 0.999F : 0.9F;
  }
  return {values};
}

engine::Targets targets_of(std::size_t images) {
  engine::Targets targets(images);
  for (auto& each : targets) {
    each =
        engine::ImageTargets{.boxes = {{0, 0.5F, 0.5F, 0.2F, 0.3F}, {2, 0.2F, 0.3F, 0.1F, 0.1F}}};
  }
  return targets;
}

}  // namespace

TEST_CASE("a test of a detector keeps no more than what is planned for it") {
  for (const Index side : {4, 20, 40}) {
    CAPTURE(side);
    const partitioner::Network network = detector(side);
    DetectionMetrics metrics(network);
    constexpr Index kImages = 12;
    metrics.accumulate(outputs_of(network, kImages), targets_of(kImages));
    Index boxes = 0;
    for (const engine::JudgedClass& each : metrics.judged()) {
      boxes += static_cast<Index>(each.boxes.size());
    }
    CHECK(boxes > 0);
    CHECK(boxes * static_cast<Index>(sizeof(engine::JudgedBox)) <=
          DetectionMetrics::most_bytes(network, kImages));
    CHECK(engine::judging_bytes(network, 4, kImages) >
          DetectionMetrics::most_bytes(network, kImages));
  }
  const partitioner::Network network = detector(40);
  CHECK(DetectionMetrics::most_bytes(network, 2000) >
        2000 * 300 * static_cast<Index>(sizeof(engine::JudgedBox)));
}

TEST_CASE("what is found on an ignored object is neither right nor wrong, by any rule") {
  const partitioner::Network network = detector(8);
  const engine::Outputs outputs = outputs_of(network, 1);
  DetectionMetrics all(network);
  all.accumulate(outputs, targets_of(1));
  REQUIRE(!all.shown()[0].found.empty());
  const engine::FoundBox& best = all.shown()[0].found[0];
  const auto side = 8.0F;
  engine::Box object{static_cast<int>(best.label),
                     static_cast<float>(best.box.left + best.box.width / 2) / side,
                     static_cast<float>(best.box.top + best.box.height / 2) / side,
                     static_cast<float>(best.box.width) / side,
                     static_cast<float>(best.box.height) / side};
  const auto judged_with = [&](bool ignored) {
    object.ignored = ignored;
    engine::Targets targets(1);
    targets[0] = engine::ImageTargets{.boxes = {engine::converted<double>(object)}};
    DetectionMetrics metrics(network);
    metrics.accumulate(outputs, targets);
    return metrics.judged()[static_cast<std::size_t>(best.label)];
  };
  using Match = engine::JudgedBox::Match;
  const engine::JudgedClass right = judged_with(false);
  CHECK(right.true_boxes() == 1);
  CHECK(right.boxes[0].voc == Match::TruePositive);
  const engine::JudgedClass ignored = judged_with(true);
  CHECK(ignored.true_boxes() == 0);
  CHECK(ignored.boxes[0].voc == Match::Ignored);
  CHECK(ignored.boxes[0].darknet == Match::Ignored);
  CHECK((ignored.boxes[0].ignored[0] & 1U) == 1);
}

TEST_CASE("two metrics of a detector merged are the one of all images") {
  const partitioner::Network network = detector(20);
  const engine::Outputs outputs = outputs_of(network, 5);
  DetectionMetrics all(network);
  all.accumulate(outputs, targets_of(5));
  const auto half = static_cast<std::ptrdiff_t>(2 * network.shape(1).volume());
  DetectionMetrics first(network);
  first.accumulate({{outputs[0].begin(), outputs[0].begin() + half}}, targets_of(2));
  DetectionMetrics second(network);
  second.accumulate({{outputs[0].begin() + half, outputs[0].end()}}, targets_of(3));
  first.merge(second);
  REQUIRE(first.judged().size() == all.judged().size());
  for (std::size_t label = 0; label < all.judged().size(); ++label) {
    CHECK(first.judged()[label].boxes == all.judged()[label].boxes);
    CHECK(first.judged()[label].truth == all.judged()[label].truth);
  }
  CHECK(first.confusion() == all.confusion());
  REQUIRE(first.shown().size() == 5);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(first.shown()[i].image == static_cast<Index>(i));
    CHECK(first.shown()[i].found.size() == all.shown()[i].found.size());
  }
}

TEST_CASE("images that are shown lie evenly among those that were tested, with what was said") {
  const partitioner::Network network = detector(4);
  DetectionMetrics metrics(network);
  for (Index images = 1; images <= 40; ++images) {
    CAPTURE(images);
    metrics.accumulate(outputs_of(network, 1), targets_of(1));
    const auto& shown = metrics.shown();
    CHECK(shown.size() <= engine::kMostShown);
    CHECK(std::cmp_greater_equal(shown.size(), std::min<Index>(images, engine::kMostShown / 2)));
    for (std::size_t i = 0; i < shown.size(); ++i) {
      CHECK(shown[i].image == static_cast<Index>(i) * (shown.size() < 2 ? 1 : shown[1].image));
      CHECK(shown[i].truth.size() == 2);
      for (const engine::FoundBox& box : shown[i].found) {
        CHECK(box.score >= engine::kConfidence);
      }
    }
  }
  CHECK(metrics.shown().back().image >= 30);
  metrics.clear();
  CHECK(metrics.shown().empty());
}
