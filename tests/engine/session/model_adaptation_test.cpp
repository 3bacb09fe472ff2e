#include "engine/session/model_adaptation.h"

#include <algorithm>
#include <fmt/format.h>

#include "tests/engine/data/samples.h"
#include "tests/support/refusals.h"
#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "partitioner/cfg/model_file.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

namespace fs = std::filesystem;

using engine::adapt_model;
using engine::AdaptationRequest;
using engine::AdaptedModel;
using tests::has;
using tests::input_error_of;
using tests::TemporaryFolder;
using tests::write_text;

// Eight pictures of 64x32 with a box each, all of other sizes, of two classes.
std::string write_boxes(const TemporaryFolder& folder) {
  std::string list;
  for (int i = 0; i < 8; ++i) {
    const std::string stem = fmt::format("{}", i);
    tests::write_png(folder / (stem + ".png"), 32, 64, 3, tests::random_bytes(32 * 64 * 3, i + 1));
    write_text(folder / (stem + ".txt"),
               fmt::format("{} 0.5 0.5 {:.2f} {:.2f}\n", i % 2, 0.1 + 0.1 * i, 0.2 + 0.05 * i));
    list += stem + ".png\n";
  }
  write_text(folder / "list.txt", list);
  write_text(folder / "set.data", "classes=2\ntrain=list.txt\nvalid=list.txt\n");
  return folder / "set.data";
}

// Two heads that share their anchors; the second one's channels pass through a layer without
// weights.
constexpr const char* kDetector = R"([net]
width=32
height=32
channels=3
learning_rate=0.1  # mine
policy=steps
steps=40,60,80
scales=.1,.1,.1
[convolutional]
filters=255
size=1
stride=8
activation=linear
[yolo]
mask=2,3
anchors=1,1, 2,2, 3,3, 4,4
classes=80
num=4
[route]
layers=-2
[convolutional]
filters=510
size=1
activation=linear
[dropout]
probability=0
[yolo]
mask=0,1
anchors=1,1, 2,2, 3,3, 4,4
classes=80
num=4
)";

std::string valid_detector() {
  std::string text = kDetector;
  text.replace(text.find("filters=255"), 11, "filters=170");
  text.replace(text.find("filters=510"), 11, "filters=170");
  return text;
}

bool mentions(const std::vector<std::string>& lines, const char* text) {
  return std::any_of(lines.begin(), lines.end(), [&](const auto& line) { return has(line, text); });
}

TEST_CASE("a detector gets classes, channels, anchors and a length that fit a data set") {
  const TemporaryFolder folder;
  const std::string data = write_boxes(folder);
  write_text(folder / "m.cfg", valid_detector());
  const AdaptedModel adapted = adapt_model({.model = folder / "m.cfg", .data = data});
  const auto model = partitioner::parse_model(adapted.text, "adapted");
  for (const int head : {1, 5}) {
    const auto& yolo = std::get<partitioner::YoloHead>(model.network.layer(head).operation);
    CHECK(yolo.classes == 2);
    CHECK(yolo.anchors.front().width < yolo.anchors.back().width);
    CHECK(yolo.anchors.back().width > 20);
  }
  CHECK(model.network.shape(0).channels == 14);
  CHECK(model.network.shape(3).channels == 14);
  CHECK(model.training.max_batches == 6000);
  CHECK(model.training.steps == std::vector<Index>{4800, 5400});
  CHECK(model.training.scales == std::vector<double>{0.1, 0.1});
  CHECK(has(adapted.text, "learning_rate=0.1  # mine\n"));
  CHECK(mentions(adapted.changes, "[yolo] in line 14: classes=2, was 80"));
  CHECK(mentions(adapted.changes, "[net] in line 1: max_batches=6000"));
  CHECK(adapted.notices.empty());

  SUBCASE("which fits then") {
    write_text(folder / "my.cfg", adapted.text);
    const AdaptedModel again = adapt_model({.model = folder / "my.cfg", .data = data});
    CHECK(again.text == adapted.text);
    CHECK(again.changes.empty());
  }
  SUBCASE("anchors are of the size that is asked for, or kept") {
    const auto wide = adapt_model({.model = folder / "m.cfg", .data = data, .size = "32x64"});
    const auto network = partitioner::parse_model(wide.text, "wide").network;
    CHECK(network.image.cols == 64);
    CHECK(std::get<partitioner::YoloHead>(network.layer(1).operation).anchors.back().width > 40);
    const auto kept = adapt_model({.model = folder / "m.cfg", .data = data, .keep_anchors = true});
    CHECK(has(kept.text, "anchors=1,1, 2,2, 3,3, 4,4"));
  }
}

TEST_CASE("of a detector without anchors only what says the classes gets other channels") {
  const TemporaryFolder folder;
  const std::string data = write_boxes(folder);
  const auto source = std::filesystem::path(TESSERA_SOURCE_DIR) / "models" / "yolox-nano.cfg";
  const AdaptedModel adapted = adapt_model({.model = source, .data = data, .size = "64x64"});
  const auto before = partitioner::read_model(source).network;
  const auto after = partitioner::parse_model(adapted.text, "adapted").network;
  Index parameters = 0;
  for (int layer = 0; layer < after.size(); ++layer) {
    const auto was = partitioner::layer_parameters(before, layer).weight;
    const auto is = partitioner::layer_parameters(after, layer).weight;
    CHECK((is.channels == was.channels || (was.channels == 80 && is.channels == 2)));
    parameters += is.channels != was.channels ? 1 : 0;
  }
  CHECK(parameters == 3);
  CHECK(mentions(adapted.changes, "classes=2, was 80"));
  CHECK_FALSE(mentions(adapted.changes, "anchors"));
}

TEST_CASE("too few boxes leave anchors, and a head that no layer alone feeds is refused") {
  const TemporaryFolder folder;
  const std::string data = write_boxes(folder);
  write_text(folder / "list.txt", "0.png\n1.png\n");
  write_text(folder / "m.cfg", valid_detector());
  const AdaptedModel few = adapt_model({.model = folder / "m.cfg", .data = data});
  CHECK(mentions(few.notices, "boxes of 2 different sizes are too few for 4 anchors"));
  CHECK(has(few.text, "anchors=1,1, 2,2, 3,3, 4,4"));
  write_text(
      folder / "joined.cfg",
      "[net]\nwidth=8\nheight=8\nchannels=3\n[convolutional]\nfilters=85\n[convolutional]\n"
      "filters=85\n[route]\nlayers=0,1\n[yolo]\nnum=2\nmask=0,1\nanchors=1,1,2,2\nclasses=80\n");
  CHECK(has(
      input_error_of([&] { (void)adapt_model({.model = folder / "joined.cfg", .data = data}); }),
      "no layer alone gives it its channels"));
  CHECK(has(input_error_of([&] {
              (void)adapt_model({.model = folder / "m.cfg", .data = data, .size = "-3x4"});
            }),
            "--size"));
}

TEST_CASE("a classifier gets an output for each class, and nothing else") {
  const TemporaryFolder folder;
  for (const char* name : {"a/1.png", "b/1.png", "c/1.png"}) {
    fs::create_directories((folder / name).parent_path());
    tests::write_png(folder / name, 8, 8, 3, tests::random_bytes(8 * 8 * 3, 1));
  }
  write_text(folder / "m.cfg",
             "[net]\nwidth=8\nheight=8\nchannels=3\nmax_batches=7\n[convolutional]\nfilters=10\n"
             "[avgpool]\n[softmax]\n");
  const AdaptedModel adapted = adapt_model({.model = folder / "m.cfg", .data = folder.path()});
  CHECK(adapted.changes ==
        std::vector<std::string>{"[convolutional] in line 6: filters=3, was 10"});
  CHECK(has(adapted.text, "max_batches=7"));
}

}  // namespace
