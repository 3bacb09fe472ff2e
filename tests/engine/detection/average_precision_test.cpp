// Average precision against pycocotools: tests/golden/map.

#include "engine/detection/average_precision.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "engine/data/sets/coco.h"
#include "partitioner/base/errors.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::CocoFigures;
using engine::FoundBox;
using engine::JudgedBox;
using engine::PixelBox;
using engine::TrueBox;

constexpr double kBound = 1e-9;

void check_figure(const nlohmann::json& expected, const std::optional<double>& found) {
  const bool nothing = expected.is_null() || expected.get<double>() < 0;
  CHECK(found.has_value() == !nothing);
  if (found && !nothing) {
    CHECK(*found == doctest::Approx(expected.get<double>()).epsilon(kBound));
  }
}

constexpr PixelBox kBox = {10, 10, 20, 20};
constexpr PixelBox kShifted = {12, 10, 20, 20};
constexpr PixelBox kElsewhere = {100, 100, 20, 20};

double area(const PixelBox& box) {
  return box.width * box.height;
}

}  // namespace

TEST_CASE("images that are judged one by one are judged as all of them together") {
  std::vector<TrueBox> truth;
  std::vector<FoundBox> found;
  std::vector<engine::JudgedClass> one_by_one(2);
  for (Index image = 0; image < 20; ++image) {
    const auto shift = static_cast<double>(image);
    const std::vector<TrueBox> there{{image, image % 2, kBox, area(kBox)},
                                     {image, 0, kElsewhere, area(kElsewhere), image % 5 == 0}};
    const std::vector<FoundBox> here{{image, image % 2, {10 + shift, 10, 20, 20}, 0.9 - shift / 40},
                                     {image, 0, {100, 100 - shift, 20, 20}, 0.3 + shift / 50}};
    truth.insert(truth.end(), there.begin(), there.end());
    found.insert(found.end(), here.begin(), here.end());
    append(one_by_one, judge_boxes(there, here, 2));
  }
  const auto together = judge_boxes(truth, found, 2);
  REQUIRE(one_by_one.size() == together.size());
  for (std::size_t label = 0; label < together.size(); ++label) {
    REQUIRE(one_by_one[label].boxes.size() == together[label].boxes.size());
    for (std::size_t i = 0; i < together[label].boxes.size(); ++i) {
      engine::JudgedBox box = one_by_one[label].boxes[i];
      box.found = together[label].boxes[i].found;  // places are in the lists that were judged
      box.object = together[label].boxes[i].object;
      CHECK(box == together[label].boxes[i]);
    }
    CHECK(one_by_one[label].truth == together[label].truth);
  }
  CHECK(coco_figures(one_by_one).ap == coco_figures(together).ap);
}

TEST_CASE("COCO's figures are those of pycocotools") {
  const auto golden = std::filesystem::path(TESSERA_SOURCE_DIR) / "tests" / "golden" / "map";
  const tests::TemporaryFolder folder;
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(golden)) {
    CAPTURE(entry.path().filename().string());
    std::ifstream file(entry.path());
    const nlohmann::json json = nlohmann::json::parse(file);
    std::ofstream(folder.path() / "truth.json") << json["ground_truth"];
    std::ofstream(folder.path() / "found.json") << json["detections"];
    const engine::CocoSet set = engine::read_coco_set(folder.path() / "truth.json");
    const auto found = engine::read_coco_findings(folder.path() / "found.json", set).boxes;
    const CocoFigures figures =
        coco_figures(judge_boxes(set.objects, found, static_cast<Index>(set.categories.size())));
    const nlohmann::json& expected = json["expected"];
    check_figure(expected["AP"], figures.ap);
    check_figure(expected["AP50"], figures.ap_at_50);
    check_figure(expected["AP75"], figures.ap_at_75);
    check_figure(expected["APs"], figures.ap_small);
    check_figure(expected["APm"], figures.ap_medium);
    check_figure(expected["APl"], figures.ap_large);
    check_figure(expected["AR1"], figures.recall_1);
    check_figure(expected["AR10"], figures.recall_10);
    check_figure(expected["AR100"], figures.recall_100);
    check_figure(expected["ARs"], figures.recall_small);
    check_figure(expected["ARm"], figures.recall_medium);
    check_figure(expected["ARl"], figures.recall_large);
    for (std::size_t i = 0; i < set.categories.size(); ++i) {
      check_figure(json["ap_by_class"][set.categories[i].name], figures.ap_of_classes[i]);
    }
    std::size_t threshold = 0;
    for (const auto& [name, value] : json["ap_by_iou"].items()) {
      check_figure(value, figures.ap_at_thresholds[threshold++]);
    }
    ++count;
  }
  CHECK(count >= 5);
}

TEST_CASE("a second box on one object is wrong, by all three programs") {
  const std::vector<TrueBox> truth{{0, 0, kBox, area(kBox)}};
  const std::vector<FoundBox> found{{0, 0, kBox, 0.9}, {0, 0, kShifted, 0.8}};
  const auto judged = judge_boxes(truth, found, 1);
  REQUIRE(judged[0].boxes.size() == 2);
  CHECK((judged[0].boxes[0].matched[0] & 1U) == 1);
  CHECK((judged[0].boxes[1].matched[0] & 1U) == 0);
  CHECK(judged[0].boxes[0].voc == JudgedBox::Match::TruePositive);
  CHECK(judged[0].boxes[1].voc == JudgedBox::Match::FalsePositive);
  CHECK(judged[0].boxes[1].darknet == JudgedBox::Match::FalsePositive);
  CHECK(*plain_figures(judged).darknet == doctest::Approx(1));
}

TEST_CASE("COCO gives a box the second-best object where the best is taken, VOC does not") {
  const std::vector<TrueBox> truth{{0, 0, kBox, area(kBox)}, {0, 0, kShifted, area(kShifted)}};
  const PixelBox nearly = {10.5, 10, 20, 20};  // nearer to the first
  const std::vector<FoundBox> found{{0, 0, kBox, 0.9}, {0, 0, nearly, 0.8}};
  const auto judged = judge_boxes(truth, found, 1);
  CHECK((judged[0].boxes[1].matched[0] & 1U) == 1);
  CHECK(judged[0].boxes[1].voc == JudgedBox::Match::FalsePositive);
}

TEST_CASE("what is found in a crowd is neither right nor wrong") {
  const std::vector<TrueBox> truth{{0, 0, {0, 0, 50, 50}, 2500, true}, {0, 0, kElsewhere, 400}};
  const std::vector<FoundBox> found{{0, 0, kBox, 0.9}, {0, 0, kElsewhere, 0.8}};
  const auto judged = judge_boxes(truth, found, 1);
  CHECK(judged[0].true_boxes() == 1);
  CHECK((judged[0].boxes[0].ignored[0] & 1U) == 1);
  CHECK(*coco_figures(judged).ap == doctest::Approx(1));
}

TEST_CASE("a class without objects does not count, one whose objects are not found counts 0") {
  const std::vector<TrueBox> truth{{0, 0, kBox, area(kBox)}, {0, 1, kElsewhere, 400}};
  const std::vector<FoundBox> found{{0, 0, kBox, 0.9}, {0, 2, kBox, 0.9}};
  const CocoFigures figures = coco_figures(judge_boxes(truth, found, 3));
  CHECK(*figures.ap_of_classes[0] == doctest::Approx(1));
  CHECK(*figures.ap_of_classes[1] == doctest::Approx(0));
  CHECK(!figures.ap_of_classes[2]);
  CHECK(*figures.ap == doctest::Approx(0.5));
}

TEST_CASE("a file that is not as COCO has it is refused, and each faulty part has its place") {
  const tests::TemporaryFolder folder;
  const auto refused = [&](const std::string& text, const std::string& message) {
    std::ofstream(folder.path() / "t.json") << text;
    CHECK_THROWS_WITH_AS((void)engine::read_coco_set(folder.path() / "t.json"),
                         doctest::Contains(message.c_str()),
                         InputError);
  };
  const auto faulty = [&](const std::string& text, std::optional<Index> image, const char* what) {
    std::ofstream(folder.path() / "t.json") << text;
    const engine::CocoSet set = engine::read_coco_set(folder.path() / "t.json");
    REQUIRE(set.faults.size() == 1);
    CHECK(set.faults[0].image == image);
    CHECK(set.faults[0].what.rfind(what, 0) == 0);
  };
  const std::string start = R"({"images":[{"id":1}],"categories":[{"id":2,"name":"a"}],)";
  refused("", "not JSON");
  refused("[]", "expected an object");
  refused(R"({"images":[],"categories":[{"id":1}],"annotations":[]})",
          "categories[0].name: missing");
  faulty(R"({"images":[{"id":1},{"id":1}],"categories":[],"annotations":[]})",
         {},
         "images[1].id: 1 is there a second time");
  faulty(R"({"images":[{"id":1,"width":"wide"}],"categories":[],"annotations":[]})",
         0,
         "images[0].width: expected a number");
  faulty(start + R"("annotations":[{"image_id":7,"category_id":2,"bbox":[0,0,1,1]}]})",
         {},
         "annotations[0].image_id: 7 is none of the images");
  faulty(start + R"("annotations":[{"image_id":1,"category_id":2,"bbox":[0,0,1]}]})",
         0,
         "annotations[0].bbox: expected four numbers");
  faulty(start + R"("annotations":[{"image_id":1,"category_id":2,"bbox":[0,0,-1,1]}]})",
         0,
         "annotations[0].bbox: a box of -1 x 1 pixels");
}
