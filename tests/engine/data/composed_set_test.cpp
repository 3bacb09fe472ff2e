#include "engine/data/composed_set.h"

#include <algorithm>

#include "tests/engine/data/samples.h"
#include "tests/support/open_dataset.h"
#include "tests/support/refusals.h"
#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "engine/base/digest.h"
#include "engine/data/inspection/box_statistics.h"
#include "engine/data/inspection/sample_sheet.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

using engine::Box;
using engine::Split;

namespace {

constexpr std::uint32_t kThings = 40;
constexpr std::uint32_t kThingSide = 28;

// Light discs and bars on black: class 0 to 9.
void write_items(const std::filesystem::path& folder) {
  for (const char* half : {"train", "t10k"}) {
    tests::Bytes pixels;
    tests::Bytes labels;
    for (std::uint32_t item = 0; item < kThings; ++item) {
      for (std::uint32_t row = 0; row < kThingSide; ++row) {
        for (std::uint32_t col = 0; col < kThingSide; ++col) {
          const bool bar = item % 2 == 0 && col > 8 && col < 18;
          const bool disc =
              item % 2 == 1 && (row - 14) * (row - 14) + (col - 14) * (col - 14) < 100;
          pixels.push_back(bar || disc ? static_cast<std::uint8_t>(150 + item) : 0);
        }
      }
      labels.push_back(static_cast<std::uint8_t>(item % 10));
    }
    tests::write_bytes(folder / (std::string(half) + "-images-idx3-ubyte"),
                       tests::idx_bytes({kThings, kThingSide, kThingSide}, pixels));
    tests::write_bytes(folder / (std::string(half) + "-labels-idx1-ubyte"),
                       tests::idx_bytes({kThings}, labels));
  }
}

std::uint64_t digest_of_pixels(const engine::ComposedPicture& composed) {
  engine::Digest digest;
  digest.add(composed.picture.values());
  digest.add(engine::digest_of(composed.boxes));
  return digest.value();
}

}  // namespace

TEST_CASE("a composed picture depends on seed and number alone, and never changes") {
  const tests::TemporaryFolder folder;
  write_items(folder.path());
  const engine::Dataset items = engine::list_dataset(folder.path(), Split::Train, 1);
  const engine::CompositionRules rules{120, 160, 7};
  const std::uint64_t third = digest_of_pixels(compose_picture(items, rules, 3));
  CHECK(third == digest_of_pixels(compose_picture(items, rules, 3)));
  CHECK(third != digest_of_pixels(compose_picture(items, rules, 4)));
  CHECK(third != digest_of_pixels(compose_picture(items, {120, 160, 8}, 3)));
  CHECK(third == 14858981070641148697U);
}

TEST_CASE("things on a composed picture lie on it, in several sizes, and cover each other little") {
  const tests::TemporaryFolder folder;
  write_items(folder.path());
  const engine::Dataset items = engine::list_dataset(folder.path(), Split::Train, 1);
  float least = 1;
  float most = 0;
  std::vector<bool> seen(10);
  for (Index number = 0; number < 60; ++number) {
    const engine::ComposedPicture composed = compose_picture(items, {120, 160, 7}, number);
    CHECK(composed.boxes.size() >= 1);
    CHECK(composed.boxes.size() <= 6);
    for (std::size_t i = 0; i < composed.boxes.size(); ++i) {
      const Box& box = composed.boxes[i];
      seen[static_cast<std::size_t>(box.label)] = true;
      CHECK(box.centre_x - box.width / 2 >= -1e-6F);
      CHECK(box.centre_x + box.width / 2 <= 1 + 1e-6F);
      CHECK(box.centre_y - box.height / 2 >= -1e-6F);
      CHECK(box.centre_y + box.height / 2 <= 1 + 1e-6F);
      least = std::min(least, box.height);
      most = std::max(most, box.height);
      for (std::size_t k = 0; k < i; ++k) {
        const Box& other = composed.boxes[k];
        const auto common = [](float a, float a_size, float b, float b_size) {
          return std::max(
              0.0F,
              std::min(a + a_size / 2, b + b_size / 2) - std::max(a - a_size / 2, b - b_size / 2));
        };
        const float both = common(box.centre_x, box.width, other.centre_x, other.width) *
                           common(box.centre_y, box.height, other.centre_y, other.height);
        CHECK(both <= 0.2501F * std::min(box.width * box.height, other.width * other.height));
      }
    }
  }
  CHECK(least < 0.2F);
  CHECK(most > 0.4F);
  CHECK(std::count(seen.begin(), seen.end(), true) == 10);
}

TEST_CASE("a composed set is a data set of which nothing is wrong") {
  const tests::TemporaryFolder folder;
  write_items(folder / "items");
  engine::write_composed_set(folder / "set", folder / "items", {64, 96, 1}, 12, 5);
  const engine::Dataset training =
      tests::open_dataset(folder / "set/detection.data", Split::Train, 3);
  CHECK(training.size() == 12);
  CHECK(training.has_boxes());
  CHECK(training.problems().empty());
  CHECK(training.class_names()[9] == "ankle-boot");
  CHECK(training.shape(0) == partitioner::MapShape{3, 64, 96});
  const engine::Dataset testing =
      tests::open_dataset(folder / "set/detection.data", Split::Test, 3);
  CHECK(testing.size() == 5);
  CHECK(testing.read(0).bytes != training.read(0).bytes);

  const engine::BoxStatistics statistics = statistics_of(training);
  CHECK(statistics.pictures == 12);
  CHECK(statistics.objects == statistics.small + statistics.medium + statistics.large);
  CHECK(statistics.objects >= 12);

  const std::string refusal = tests::input_error_of([&] {
    engine::write_composed_set(folder / "set", folder / "items", {64, 96, 1}, 1, 1);
  });
  CHECK(tests::has(refusal, "there is something here already"));
}

TEST_CASE("objects are counted by their area in pixels of their picture") {
  const tests::TemporaryFolder folder;
  tests::write_png(folder / "a.png", 200, 400, 3, tests::random_bytes(200 * 400 * 3, 1));
  tests::write_png(folder / "b.png", 10, 10, 3, tests::random_bytes(300, 2));
  tests::write_text(folder / "a.txt",
                    "0 0.5 0.5 0.05 0.1\n"   // 20 x 20
                    "0 0.5 0.5 0.2 0.2\n"    // 80 x 40
                    "0 0.5 0.5 0.5 0.5\n");  // 200 x 100
  tests::write_text(folder / "b.txt", "");
  tests::write_text(folder / "list", "a.png\nb.png\n");
  tests::write_text(folder / "d.data", "classes=1\ntrain=list\nvalid=list\n");
  const engine::BoxStatistics statistics =
      statistics_of(engine::list_dataset(folder / "d.data", Split::Train, 3));
  CHECK(statistics.pictures == 2);
  CHECK(statistics.empty_pictures == 1);
  CHECK(statistics.small == 1);
  CHECK(statistics.medium == 1);
  CHECK(statistics.large == 1);
  CHECK(statistics.by_side == std::array<Index, 9>{0, 0, 1, 1, 0, 0, 1, 0, 0});
}

TEST_CASE("a sheet shows pictures with named boxes in the colours that its list says") {
  const tests::TemporaryFolder folder;
  tests::write_png(folder / "a.png", 100, 200, 3, tests::Bytes(100 * 200 * 3, 0));
  tests::write_text(folder / "a.txt", "1 0.5 0.5 0.5 0.5\n");
  tests::write_text(folder / "list", "a.png\nnone.png\n");
  tests::write_text(folder / "none.txt", "");
  tests::write_text(folder / "names", "cup\nball\n");
  tests::write_text(folder / "d.data", "names=names\ntrain=list\nvalid=list\n");
  engine::SampleSheet sheet =
      engine::sample_sheet(engine::list_dataset(folder / "d.data", Split::Train, 3));
  CHECK(sheet.picture.cols() == 484);
  CHECK(sheet.picture.rows() == 240);
  const auto pixel = [&](Index row, Index col) {
    const std::uint8_t* bytes = sheet.picture.pixel(row, col);
    return std::vector<int>{bytes[0], bytes[1], bytes[2]};
  };
  const std::vector<int> green{40, 200, 60};
  CHECK(pixel(30, 60) == green);   // the left upper corner of the box, at a quarter of 240 x 120
  CHECK(pixel(90, 180) == green);  // the right lower one
  CHECK(pixel(60, 60) == green);   // its left side
  CHECK(pixel(60, 120) == std::vector<int>{0, 0, 0});  // within
  CHECK(pixel(10, 10) == std::vector<int>{0, 0, 0});
  CHECK(pixel(28, 61) == green);  // the label on top of it, with the name in black
  int ink = 0;
  for (Index row = 14; row < 28; ++row) {
    for (Index col = 62; col < 80; ++col) {
      ink += pixel(row, col)[1] < 100 ? 1 : 0;
    }
  }
  CHECK(ink > 5);
  CHECK(tests::has(sheet.list, "row 1, column 1: " + (folder / "a.png").string()));
  CHECK(tests::has(sheet.list, "green: ball"));
  CHECK(tests::has(sheet.list, "none.png"));
}
