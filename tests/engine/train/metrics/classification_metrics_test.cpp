#include "engine/train/metrics/classification_metrics.h"

#include <cmath>

#include <doctest/doctest.h>

#include "engine/base/random.h"
#include "engine/train/checkpoints/checkpoint.h"

namespace tessera::engine {
namespace {

constexpr int kClasses = 7;

std::vector<float> random_outputs(Index images, std::uint64_t seed) {
  std::vector<float> outputs;
  for (Index i = 0; i < images * kClasses; ++i) {
    outputs.push_back(static_cast<float>(random_uniform(seed, static_cast<std::uint64_t>(i))));
  }
  return outputs;
}

}  // namespace

TEST_CASE("metrics of two halves, merged, are those of all images") {
  const std::vector<float> outputs = random_outputs(10, 3);
  const Targets targets = class_targets({0, 1, 2, 3, 4, 5, 6, 0, 1, 2});
  ClassificationMetrics all(kClasses);
  all.accumulate({outputs}, targets);
  ClassificationMetrics first(kClasses);
  first.accumulate({{outputs.begin(), outputs.begin() + 4 * kClasses}},
                   {targets.begin(), targets.begin() + 4});
  ClassificationMetrics second(kClasses);
  second.accumulate({{outputs.begin() + 4 * kClasses, outputs.end()}},
                    {targets.begin() + 4, targets.end()});
  first.merge(second);
  CHECK(first.result() == all.result());
  CHECK(first.pictures() == all.pictures());
  CHECK(first.confusions() == all.confusions());
  for (int i = 0; i < kClasses; ++i) {
    CHECK(first.score(i).pictures == all.score(i).pictures);
    CHECK(first.score(i).predicted == all.score(i).predicted);
    CHECK(first.score(i).right == all.score(i).right);
  }
}

TEST_CASE("empty places and images of unknown class do not count") {
  const std::vector<float> outputs = random_outputs(3, 4);
  ClassificationMetrics metrics(kClasses);
  metrics.accumulate({outputs}, {ImageTargets{.label = 2}, std::nullopt, ImageTargets{}});
  CHECK(metrics.pictures() == 1);
  CHECK(metrics.score(2).pictures == 1);
}

TEST_CASE("the first value is the accuracy, top-5 follows where there are more than five classes") {
  const ClassificationMetrics many(6);
  const std::vector<MetricValue> values = many.result();
  REQUIRE(values.size() == 2);
  CHECK(values[0].name == "accuracy");
  CHECK(values[0].larger_is_better);
  CHECK(std::isnan(values[0].value));
  CHECK(values[1].name == "top5");
  CHECK(ClassificationMetrics(5).result().size() == 1);
}

TEST_CASE("a metric that was cleared has seen nothing") {
  ClassificationMetrics metrics(kClasses);
  metrics.accumulate({random_outputs(1, 5)}, class_targets({1}));
  metrics.clear();
  CHECK(metrics.classes() == kClasses);
  CHECK(metrics.pictures() == 0);
  CHECK(metrics.confusions().empty());
}

TEST_CASE("a metric's value is shown in per cent where it is a share") {
  CHECK(described({.name = "accuracy", .value = 0.84569}) == "accuracy 84.57 %");
  CHECK(described({.name = "error", .value = 12.5, .is_share = false}) == "error 12.5000");
  CHECK(described({.name = "map50", .value = std::nan("")}) == "no map50");
}

TEST_CASE("of two results the better metric is better, and the lower loss where they are equal") {
  const auto result = [](double value, double loss, bool larger_is_better) {
    return TestResult{{.name = "m", .value = value, .larger_is_better = larger_is_better}, loss};
  };
  CHECK(result(2, 9, true).better_than(result(1, 0, true)));
  CHECK(!result(1, 0, true).better_than(result(2, 9, true)));
  CHECK(result(1, 9, false).better_than(result(2, 0, false)));
  CHECK(!result(2, 0, false).better_than(result(1, 9, false)));
  CHECK(result(1, 0, true).better_than(result(1, 1, true)));
  CHECK(!result(1, 1, true).better_than(result(1, 1, true)));
  const double none = std::nan("");
  CHECK(result(0, 9, true).better_than(result(none, 0, true)));
  CHECK(!result(none, 0, true).better_than(result(0, 9, true)));
  CHECK(result(none, 0, true).better_than(result(none, 1, true)));
  CHECK(!result(none, 1, true).better_than(result(none, 1, true)));
  CHECK(!result(none, none, true).better_than(result(none, 1, true)));
  CHECK(result(none, 1, true).better_than(result(none, none, true)));
  TestResult by_another_metric = result(1, 1, true);
  by_another_metric.score.name = "other";
  CHECK(by_another_metric.better_than(result(5, 0, true)));
}

}  // namespace tessera::engine
