// What a [yolo] makes of random inputs and boxes, against Bochkovskiy's Darknet: tests/golden/yolo.

#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "engine/detection/head.h"
#include "engine/layers/layer.h"
#include "partitioner/cfg/model_file.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Tensor;
using engine::View;

// Darknet computes in single precision. Differences are measured by the largest value of their
// kind.
constexpr double kValueBound = 1e-6;
constexpr double kCostBound = 1e-5;

struct YoloCase {
  nlohmann::json json;
  partitioner::ModelFile model;
  engine::HeadSite site;
  Region map;

  explicit YoloCase(const std::filesystem::path& path) {
    std::ifstream file(path);
    json = nlohmann::json::parse(file);
    const std::vector<Index> image = json["image"];
    const std::vector<Index> grid = json["grid"];
    const std::vector<double> anchors = json["anchors"];
    const std::vector<int> mask = json["mask"];
    const Index classes = json["classes"];
    const Index channels = static_cast<Index>(mask.size()) * (5 + classes);
    std::string text = fmt::format(
        "[net]\nchannels=3\nheight={}\nwidth={}\n{}\n[convolutional]\nfilters={}\nsize=1\nstride={}"
        "\n"
        "activation=linear\n[yolo]\nclasses={}\nnum={}\nanchors={}\nmask={}\n",
        image[0],
        image[1],
        json["net"].get<std::string>(),
        channels,
        image[0] / grid[0],
        classes,
        anchors.size() / 2,
        fmt::join(anchors, ","),
        fmt::join(mask, ","));
    for (const auto& [key, value] : json["yolo"].items()) {
      text += key + '=' + (value.is_string() ? value.get<std::string>() : value.dump()) + '\n';
    }
    model = partitioner::parse_model(text, path.filename().string());
    site = engine::head_site(model.network, 1);
    map = partitioner::whole_map(model.network, 1, json["batch"].get<Index>());
  }

  [[nodiscard]] engine::Targets targets() const {
    engine::Targets targets;
    for (const auto& image : json["boxes"]) {
      engine::ImageTargets objects;
      for (const std::vector<float> box : image) {
        objects.boxes.push_back({static_cast<int>(box[4]), box[0], box[1], box[2], box[3]});
      }
      targets.emplace_back(objects);
    }
    return targets;
  }
};

void check_equal(const std::vector<double>& expected, const std::vector<double>& found) {
  REQUIRE(expected.size() == found.size());
  double largest = 0;
  for (const double value : expected) {
    largest = std::max(largest, std::abs(value));
  }
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    worst = std::max(worst, std::abs(expected[i] - found[i]));
  }
  CHECK(worst <= kValueBound * largest);
}

template <class T>
void compare(const YoloCase& golden) {
  const std::vector<double> given = golden.json["input"];
  const std::vector<T> values(given.begin(), given.end());
  Tensor<T> input(golden.map);
  copy_in(values.data(), golden.map, input.view());
  Tensor<T> output(golden.map);
  head_forward(golden.site, View<const T>(input.view()), golden.map, output.view());
  std::vector<T> plain(values.size());
  copy_out(View<const T>(output.view()), golden.map, plain.data());
  check_equal(golden.json["output"], std::vector<double>(plain.begin(), plain.end()));

  std::vector<double> deltas;
  const engine::Targets targets = golden.targets();
  const engine::HeadCost cost =
      for_each_judged_image(golden.site,
                            {targets, 0},
                            golden.map,
                            View<const T>(output.view()),
                            [&](const Region& /*cells*/, const std::vector<double>& of_image) {
                              deltas.insert(deltas.end(), of_image.begin(), of_image.end());
                            });
  check_equal(golden.json["delta"], deltas);
  const double mean = cost.matches > 0 ? cost.iou_losses / static_cast<double>(cost.matches) : 0;
  CHECK(cost.squares + mean ==
        doctest::Approx(golden.json["cost"].get<double>()).epsilon(kCostBound));
}

}  // namespace

TEST_CASE("outputs, deltas and cost of a [yolo] are Darknet's") {
  const auto folder = std::filesystem::path(TESSERA_SOURCE_DIR) / "tests" / "golden" / "yolo";
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    CAPTURE(entry.path().filename().string());
    const YoloCase golden(entry.path());
    compare<double>(golden);
    compare<float>(golden);
    ++count;
  }
  CHECK(count >= 13);
}
