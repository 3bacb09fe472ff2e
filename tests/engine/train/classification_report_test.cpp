#include "engine/train/classification_report.h"

#include <cmath>
#include <limits>
#include <sstream>

#include <doctest/doctest.h>

#include "engine/train/metrics/classification_metrics.h"
#include "partitioner/base/text_table.h"

namespace tessera::engine {
namespace {

// Outputs of `classes` classes of which `best` is the largest.
std::vector<float> answer(int classes, int best) {
  std::vector<float> outputs(static_cast<std::size_t>(classes), 0.1F);
  outputs[static_cast<std::size_t>(best)] = 0.9F;
  return outputs;
}

// Two of three balls and one of two cups are right; the tent is taken for a cup.
ClassificationMetrics example() {
  ClassificationMetrics metrics(3);
  metrics.add(answer(3, 0), 0);
  metrics.add(answer(3, 0), 0);
  metrics.add(answer(3, 1), 0);
  metrics.add(answer(3, 1), 1);
  metrics.add(answer(3, 0), 1);
  metrics.add(answer(3, 1), 2);
  return metrics;
}

const std::vector<std::string> kNames{"ball", "cup", "tent"};

std::size_t longest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t longest = 0;
  for (std::string line; std::getline(lines, line);) {
    longest = std::max(longest, text_width(line));
  }
  return longest;
}

}  // namespace

TEST_CASE("accuracy, recall and precision are the shares of what was counted") {
  const ClassificationMetrics metrics = example();
  CHECK(metrics.pictures() == 6);
  CHECK(metrics.accuracy() == doctest::Approx(3.0 / 6));
  CHECK(metrics.score(0).recall() == doctest::Approx(2.0 / 3));
  CHECK(metrics.score(0).precision() == doctest::Approx(2.0 / 3));
  CHECK(metrics.score(1).recall() == doctest::Approx(1.0 / 2));
  CHECK(metrics.score(1).precision() == doctest::Approx(1.0 / 3));
  CHECK(metrics.score(2).recall() == 0);
  CHECK(std::isnan(metrics.score(2).precision()));
}

TEST_CASE("each row of the confusion matrix sums to the pictures of its class") {
  const ClassificationMetrics metrics = example();
  for (int label = 0; label < 3; ++label) {
    Index sum = 0;
    for (int predicted = 0; predicted < 3; ++predicted) {
      sum += metrics.confusion(label, predicted);
    }
    CHECK(sum == metrics.score(label).pictures);
  }
  CHECK(metrics.confusions() == std::vector<Confusion>{{0, 1, 1}, {1, 0, 1}, {2, 1, 1}});
}

TEST_CASE("the most frequent confusion comes first") {
  ClassificationMetrics metrics = example();
  metrics.add(answer(3, 1), 2);
  CHECK(metrics.confusions().front() == Confusion{2, 1, 2});
}

TEST_CASE("of equal outputs the first is the predicted one") {
  ClassificationMetrics metrics(2);
  metrics.add(std::vector<float>{0.5F, 0.5F}, 0);
  metrics.add(std::vector<float>{0.5F, 0.5F}, 1);
  CHECK(metrics.right() == 1);
  CHECK(metrics.confusion(1, 0) == 1);
}

TEST_CASE("a label is among the top five if fewer than five outputs come before it") {
  const std::vector<float> outputs{0.9F, 0.8F, 0.7F, 0.6F, 0.5F, 0.4F};
  for (int label = 0; label < 6; ++label) {
    ClassificationMetrics metrics(6);
    metrics.add(outputs, label);
    CHECK(metrics.top5() == (label < 5 ? 1 : 0));
  }
  ClassificationMetrics equal(6);  // all alike: the order is that of their numbers
  equal.add(std::vector<float>(6, 0.5F), 4);
  equal.add(std::vector<float>(6, 0.5F), 5);
  CHECK(equal.top5() == doctest::Approx(0.5));
}

TEST_CASE("an output that is NaN is not right, a label without an output is a mistake") {
  ClassificationMetrics metrics(2);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  metrics.add(std::vector<float>{nan, nan}, 0);
  metrics.add(std::vector<float>{0.9F, 0.1F}, 7);
  CHECK(metrics.pictures() == 2);
  CHECK(metrics.right() == 0);
}

TEST_CASE("the table of up to ten classes has a row per class and fits a terminal") {
  CHECK(classification_table(example(), kNames) ==
        "confusion matrix: each class, and how its pictures were classified:\n"
        "class      recall precision as 0 1 2\n"
        "    0 ball 66.7 %    66.7 %    2 1 0\n"
        "    1 cup  50.0 %    33.3 %    1 1 0\n"
        "    2 tent  0.0 %         -    0 1 0\n");
  ClassificationMetrics ten(10);
  for (int picture = 0; picture < 9990; ++picture) {
    ten.add(answer(10, picture % 10), picture % 10);
  }
  const std::string table =
      classification_table(ten, std::vector<std::string>(10, "a name that is much too long"));
  CHECK(longest_line(table) <= 80);
}

TEST_CASE("of more than ten classes the worst and the most confused are shown, in one screen") {
  ClassificationMetrics metrics(1000);
  for (int label = 0; label < 1000; ++label) {
    metrics.add(answer(1000, label), label);
    metrics.add(answer(1000, label % 7 == 3 ? label - 1 : label), label);
  }
  const std::string table = classification_table(metrics, {});
  CHECK(std::count(table.begin(), table.end(), '\n') <= 21);  // and three above it
  CHECK(longest_line(table) <= 80);
  CHECK(table.find("class 3 ") != std::string::npos);
  CHECK(table.find("1 of 2") != std::string::npos);
}

TEST_CASE("names with control characters are shown harmlessly") {
  const std::string table = classification_table(example(), {"\x1b[2Jball", "cup", "tent"});
  CHECK(table.find('\x1b') == std::string::npos);
}

TEST_CASE("JSON has every class and pair, null where a share is one of nothing") {
  nlohmann::ordered_json json;
  add_classification(json, example(), kNames);
  CHECK_FALSE(json.contains("top5"));
  CHECK(json["classes"].size() == 3);
  CHECK(json["classes"][1]["name"] == "cup");
  CHECK(json["classes"][1]["recall"] == 0.5);
  CHECK(json["classes"][2]["precision"].is_null());
  CHECK(json["confusion"][0] == std::vector<int>{2, 1, 0});
  ClassificationMetrics six(6);
  six.add(answer(6, 3), 3);
  add_classification(json, six, {});
  CHECK(json["top5"] == 1);
}

}  // namespace tessera::engine
