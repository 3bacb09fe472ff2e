#include "engine/run_log/detection_sheets.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/engine/data/samples.h"
#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "engine/data/dataset.h"
#include "partitioner/cfg/model_file.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::BatchSource;
using engine::Colour;
using engine::RgbPicture;
using engine::Split;

constexpr Colour kGrey{96, 96, 96};
constexpr Index kCaption = 22;  // rows above the pictures
constexpr Index kSide = 320;

// Four grey pictures of 32 x 32 with a cup in the middle of each.
void write_set(const std::filesystem::path& folder) {
  std::string list;
  for (const char* name : {"a", "b", "c", "d"}) {
    const std::string stem = name;
    tests::write_png(folder / (stem + ".png"), 32, 32, 3, tests::Bytes(32 * 32 * 3, kGrey.red));
    tests::write_text(folder / (stem + ".txt"), "0 0.5 0.5 0.5 0.5\n");
    list += stem + ".png\n";
  }
  tests::write_text(folder / "list", list);
  tests::write_text(folder / "names", "cup\nball\n");
  tests::write_text(folder / "d.data", "names=names\ntrain=list\nvalid=list\n");
}

partitioner::ModelFile detector(const std::filesystem::path& folder) {
  tests::write_text(folder / "m.cfg",
                    "[net]\nheight=32\nwidth=32\nchannels=3\nbatch=4\n"
                    "[convolutional]\nfilters=7\nsize=32\nstride=32\nactivation=linear\n"
                    "[yolo]\nmask=0\nanchors=16,16\nclasses=2\nnum=1\njitter=0\n");
  return partitioner::read_model(folder / "m.cfg");
}

BatchSource source(const std::filesystem::path& folder, Split split, Index batch = 4) {
  engine::BatchOptions options;
  options.rules = engine::rendering_rules(detector(folder));
  options.batch = batch;
  options.split = split;
  return {engine::list_dataset(folder / "d.data", split, 3), options, "m.cfg"};
}

int count(const RgbPicture& sheet, Colour colour) {
  int pixels = 0;
  for (Index row = kCaption; row < sheet.rows(); ++row) {
    for (Index col = 0; col < sheet.cols(); ++col) {
      pixels += sheet.at(row, col) == colour ? 1 : 0;
    }
  }
  return pixels;
}

constexpr Colour kOrange{230, 159, 0};

TEST_CASE("a sheet of a step has its pictures with their objects in dashed frames") {
  const tests::TemporaryFolder folder;
  write_set(folder.path());
  const RgbPicture sheet = training_sheet(source(folder.path(), Split::Train), 3, 1);
  CHECK(sheet.rows() == kCaption + 2 * kSide + 4);
  CHECK(sheet.cols() == 2 * kSide + 4);
  CHECK(sheet.at(kCaption + 10, 10) == kGrey);
  CHECK(sheet.at(kCaption + kSide + 10, kSide + 10) == kGrey);
  CHECK(count(sheet, kGrey) > 4 * kSide * kSide * 8 / 10);
  CHECK(count(sheet, engine::kWhite) > 4 * 80);  // half of each frame, and names
  CHECK(count(sheet, kOrange) == 0);
}

TEST_CASE("a step of several passes has the pictures of all of them") {
  const tests::TemporaryFolder folder;
  write_set(folder.path());
  const std::vector<std::uint8_t> greys{60, 90, 120, 150};
  for (std::size_t i = 0; i < greys.size(); ++i) {
    tests::write_png(folder / (std::string("abcd").substr(i, 1) + ".png"),
                     32,
                     32,
                     3,
                     tests::Bytes(32 * 32 * 3, greys[i]));
  }
  for (const Index step : {1, 2}) {  // of an epoch each
    const RgbPicture sheet = training_sheet(source(folder.path(), Split::Train, 1), step, 4);
    for (const std::uint8_t grey : greys) {
      CAPTURE(step);
      CAPTURE(int{grey});
      CHECK(count(sheet, {grey, grey, grey}) > kSide * kSide * 8 / 10);
    }
  }
}

TEST_CASE("a sheet of a test has what was found in frames of another kind") {
  const tests::TemporaryFolder folder;
  write_set(folder.path());
  const BatchSource testing = source(folder.path(), Split::Test);
  engine::DetectionMetrics metrics(detector(folder.path()).network);
  CHECK(test_sheet(testing, 3, metrics).rows() >= kCaption);  // nothing was tested: a caption alone
  // x, y, width, height, objectness, classes of one cell: the first picture has a ball in the
  // middle, half as wide as the picture.
  engine::Outputs outputs{std::vector<float>(4 * 7, 0.0F)};
  const std::vector<float> ball{0.5F, 0.5F, 0, 0, 0.9F, 0, 0.9F};
  std::copy(ball.begin(), ball.end(), outputs[0].begin());
  metrics.accumulate(outputs, testing.targets(0));
  REQUIRE(metrics.shown().front().found.size() == 1);
  const RgbPicture sheet = test_sheet(testing, 3, metrics);
  CHECK(sheet.rows() == kCaption + 2 * kSide + 4);
  CHECK(count(sheet, kOrange) > 100);
  CHECK(sheet.at(kCaption + 237, 160) ==
        kOrange);  // the lower edge of the frame, beside the dashes
  CHECK(!(sheet.at(kCaption + 237, kSide + 4 + 160) == kOrange));  // the second has none
  CHECK(count(sheet, engine::kWhite) > 4 * 60);
}

}  // namespace
