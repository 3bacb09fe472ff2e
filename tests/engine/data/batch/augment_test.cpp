#include "engine/data/batch/augment.h"

#include <algorithm>
#include <cmath>

#include "tests/engine/data/samples.h"
#include "tests/support/refusals.h"
#include <doctest/doctest.h>

#include "engine/base/random.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

using engine::Augmentation;
using engine::Picture;
using engine::RenderingRules;
using partitioner::MapShape;
using tests::has;
using tests::picture_of;
using tests::random_picture;
using tests::values_of;

namespace {

RenderingRules plain_rules(const MapShape& input) {
  RenderingRules rules;
  rules.input = input;
  rules.picture = input;
  rules.augmentation.flip = false;
  return rules;
}

// Everything at once.
RenderingRules wild_rules(const MapShape& input) {
  RenderingRules rules = plain_rules(input);
  rules.picture.rows += 3;
  rules.picture.cols += 5;
  rules.augmentation = {.flip = true,
                        .angle = 30,
                        .aspect = 1.5,
                        .saturation = 1.7,
                        .exposure = 1.6,
                        .hue = 0.2,
                        .min_crop = 6,
                        .max_crop = 30,
                        .crop_padding = 2};
  rules.crop = partitioner::Crop{.flip = true, .angle = 10, .saturation = 1.2, .exposure = 1.3};
  return rules;
}

std::vector<float> whole(const Picture& picture,
                         const Augmentation& augmentation,
                         const RenderingRules& rules) {
  std::vector<float> out(static_cast<std::size_t>(rules.input.volume()));
  render(picture,
         augmentation,
         rules,
         {{0, 1}, {0, rules.input.channels}, {0, rules.input.rows}, {0, rules.input.cols}},
         out);
  return out;
}

float at(
    const std::vector<float>& values, const MapShape& shape, Index channel, Index row, Index col) {
  return values[static_cast<std::size_t>((channel * shape.rows + row) * shape.cols + col)];
}

// The value of the picture there, 0 outside.
float pixel(const Picture& picture, Index channel, Index row, Index col) {
  const bool inside = row >= 0 && col >= 0 && row < picture.shape.rows && col < picture.shape.cols;
  return inside ? picture.value(channel, row, col) : 0.0F;
}

Range random_range(Index size, std::uint64_t draw) {
  const auto first =
      static_cast<Index>(engine::random_bits(5, draw, 0) % static_cast<std::uint64_t>(size));
  const auto second =
      static_cast<Index>(engine::random_bits(5, draw, 1) % static_cast<std::uint64_t>(size));
  return {std::min(first, second), std::max(first, second) + 1};
}

}  // namespace

TEST_CASE(
    "a region is rendered with the same bits as those cells of the whole, whatever the "
    "augmentation") {
  for (std::uint64_t trial = 0; trial < 200; ++trial) {
    CAPTURE(trial);
    const Index channels = trial % 2 == 0 ? 3 : 1;
    const MapShape input{channels, 11, 14};
    RenderingRules rules = trial % 3 == 0 ? plain_rules(input) : wild_rules(input);
    rules.convention =
        trial % 5 == 0 ? engine::PixelConvention{{0.3F}, {0.7F}} : engine::PixelConvention{};
    const Picture picture =
        random_picture({channels, 5 + static_cast<Index>(trial % 23), 19}, trial);
    const Augmentation augmentation =
        draw_augmentation(rules, picture.shape, 3, static_cast<Index>(trial), 2);
    const std::vector<float> all = whole(picture, augmentation, rules);
    const Region region{{4, 5},
                        random_range(channels, 3 * trial),
                        random_range(input.rows, 3 * trial + 1),
                        random_range(input.cols, 3 * trial + 2)};
    std::vector<float> part(static_cast<std::size_t>(region.volume()));
    render(picture, augmentation, rules, region, part);
    std::size_t cell = 0;
    bool same = true;
    for (Index c = region.channels.begin; c < region.channels.end; ++c) {
      for (Index h = region.rows.begin; h < region.rows.end; ++h) {
        for (Index w = region.cols.begin; w < region.cols.end; ++w) {
          same = same && part[cell++] == at(all, input, c, h, w);
        }
      }
    }
    CHECK(same);
  }
}

TEST_CASE("without augmentation a picture of the input's size is copied, bit for bit") {
  for (const MapShape shape : {MapShape{1, 28, 28}, MapShape{3, 7, 12}, MapShape{3, 1, 1}}) {
    const Picture picture = random_picture(shape, 1);
    const RenderingRules rules = plain_rules(shape);
    CHECK(whole(picture, draw_augmentation(rules, shape, 1, 2, 3), rules) == values_of(picture));
    CHECK(whole(picture, centre_crop(rules, shape), rules) == values_of(picture));
  }
}

TEST_CASE("flipping alone mirrors about half of the pictures and changes no value") {
  const MapShape shape{3, 6, 9};
  const Picture picture = random_picture(shape, 2);
  RenderingRules rules = plain_rules(shape);
  rules.augmentation.flip = true;
  int mirrored = 0;
  for (Index position = 0; position < 1000; ++position) {
    const Augmentation augmentation = draw_augmentation(rules, shape, 9, 0, position);
    mirrored += augmentation.mirrored ? 1 : 0;
    const std::vector<float> out = whole(picture, augmentation, rules);
    const Index col = augmentation.mirrored ? shape.cols - 1 - 2 : 2;
    CHECK(at(out, shape, 1, 4, 2) == picture.value(1, 4, col));
  }
  CHECK(std::abs(mirrored - 500) < 80);  // five standard deviations
}

TEST_CASE("crop padding moves the picture by whole cells within the padding and shows 0 outside") {
  const MapShape shape{1, 8, 8};
  const Picture picture = random_picture(shape, 3);
  RenderingRules rules = plain_rules(shape);
  rules.augmentation.crop_padding = 4;
  std::vector<bool> seen(81);
  for (Index position = 0; position < 2000; ++position) {
    const Augmentation augmentation = draw_augmentation(rules, shape, 9, 5, position);
    const auto dx = static_cast<Index>(augmentation.centre_x - 4);
    const auto dy = static_cast<Index>(augmentation.centre_y - 4);
    REQUIRE(std::abs(dx) <= 4);
    REQUIRE(std::abs(dy) <= 4);
    seen[static_cast<std::size_t>((dy + 4) * 9 + dx + 4)] = true;
    const std::vector<float> out = whole(picture, augmentation, rules);
    bool same = true;
    for (Index row = 0; row < 8; ++row) {
      for (Index col = 0; col < 8; ++col) {
        same = same && at(out, shape, 0, row, col) == pixel(picture, 0, row + dy, col + dx);
      }
    }
    CHECK(same);
  }
  CHECK(std::count(seen.begin(), seen.end(), true) == 81);
}

TEST_CASE(
    "a crop layer cuts a window out of the picture and scales its values to -1..1 unless told not "
    "to") {
  const MapShape input{3, 5, 4};
  const Picture picture = random_picture({3, 9, 8}, 4);
  RenderingRules rules = plain_rules(input);
  rules.picture = picture.shape;
  rules.crop = partitioner::Crop{.noadjust = true};
  const std::vector<float> centre = whole(picture, centre_crop(rules, picture.shape), rules);
  CHECK(at(centre, input, 2, 1, 3) == pixel(picture, 2, 2 + 1, 2 + 3));
  bool moved = false;
  for (Index position = 0; position < 200; ++position) {
    const Augmentation augmentation = draw_augmentation(rules, picture.shape, 6, 0, position);
    const std::vector<float> out = whole(picture, augmentation, rules);
    const auto top = static_cast<Index>(augmentation.centre_y - 2.5);
    const auto left = static_cast<Index>(augmentation.centre_x - 2);
    REQUIRE(top >= 0);
    REQUIRE(left >= 0);
    REQUIRE(top <= 4);
    REQUIRE(left <= 4);
    CHECK(at(out, input, 1, 4, 3) == pixel(picture, 1, top + 4, left + 3));
    moved = moved || top != 2;
  }
  CHECK(moved);
  rules.crop->noadjust = false;
  const std::vector<float> adjusted = whole(picture, centre_crop(rules, picture.shape), rules);
  CHECK(adjusted[7] == doctest::Approx(2 * centre[7] - 1));
}

TEST_CASE(
    "for testing the short side fills the input and the long side is cut at both ends alike") {
  const MapShape input{1, 10, 10};
  tests::Bytes bytes;
  for (Index row = 0; row < 20; ++row) {
    for (Index col = 0; col < 40; ++col) {
      bytes.push_back(static_cast<std::uint8_t>(4 * col));
    }
  }
  const Picture picture = picture_of({1, 20, 40}, bytes);
  const RenderingRules rules = plain_rules(input);
  const std::vector<float> out = whole(picture, centre_crop(rules, picture.shape), rules);
  for (Index col = 0; col < 10; ++col) {
    // Each cell covers two pixels from column 10 on: the mean of both lies where it samples.
    CHECK(at(out, input, 0, 3, col) ==
          doctest::Approx(4 * (10 + 2 * static_cast<double>(col) + 0.5) / 255));
  }
}

TEST_CASE("enlarging repeats the edge for half a cell and no darkness comes in from outside") {
  const MapShape input{1, 9, 9};
  const Picture picture = picture_of({1, 3, 3}, tests::Bytes(9, 204));
  const RenderingRules rules = plain_rules(input);
  for (const float value : whole(picture, centre_crop(rules, picture.shape), rules)) {
    CHECK(value == 0.8F);
  }
}

TEST_CASE(
    "the short side takes every size between min_crop and max_crop, and aspect is as often above 1 "
    "as below") {
  RenderingRules rules = plain_rules({1, 10, 10});
  rules.augmentation.min_crop = 8;
  rules.augmentation.max_crop = 12;
  rules.augmentation.aspect = 2;
  const MapShape picture{1, 20, 20};
  std::vector<int> sizes(13);
  int narrow = 0;
  for (Index position = 0; position < 1000; ++position) {
    const Augmentation augmentation = draw_augmentation(rules, picture, 1, 0, position);
    const double rows = 20 / augmentation.y_per_row;
    const double cols = 20 / augmentation.x_per_col;
    ++sizes[static_cast<std::size_t>(std::lround(std::min(rows, cols)))];
    narrow += cols < rows ? 1 : 0;
  }
  for (std::size_t size = 8; size <= 12; ++size) {
    CHECK(std::abs(sizes[size] - 200) < 65);
  }
  CHECK(std::abs(narrow - 500) < 80);
}

TEST_CASE("turning by a right angle moves cells as a rotation does") {
  const MapShape shape{1, 5, 5};
  const Picture picture = random_picture(shape, 8);
  const RenderingRules rules = plain_rules(shape);
  Augmentation quarter = centre_crop(rules, shape);
  quarter.x_per_col = 0;
  quarter.x_per_row = -1;
  quarter.y_per_col = 1;
  quarter.y_per_row = 0;
  const std::vector<float> out = whole(picture, quarter, rules);
  CHECK(at(out, shape, 0, 0, 1) == picture.value(0, 1, 4));
  CHECK(at(out, shape, 0, 3, 0) == picture.value(0, 0, 1));
}

TEST_CASE(
    "hue by a third of a turn exchanges the colours, and exposure and saturation act as in HSV") {
  const MapShape shape{3, 1, 2};
  const Picture picture = picture_of(shape, {204, 51, 51, 51, 102, 51});  // a colour and a grey
  const RenderingRules rules = plain_rules(shape);
  Augmentation augmentation = centre_crop(rules, shape);
  augmentation.hue = 1.0F / 3;
  std::vector<float> out = whole(picture, augmentation, rules);
  CHECK(at(out, shape, 1, 0, 0) == doctest::Approx(0.8));
  CHECK(at(out, shape, 2, 0, 0) == doctest::Approx(0.2));
  CHECK(at(out, shape, 0, 0, 0) == doctest::Approx(0.4));
  CHECK(at(out, shape, 0, 0, 1) == doctest::Approx(0.2));
  augmentation.hue = 0;
  augmentation.exposure = 0.5F;
  out = whole(picture, augmentation, rules);
  CHECK(at(out, shape, 0, 0, 0) == doctest::Approx(0.4));
  CHECK(at(out, shape, 1, 0, 0) == doctest::Approx(0.1));
  augmentation.exposure = 4;
  CHECK(at(whole(picture, augmentation, rules), shape, 0, 0, 0) == 1.0F);
  augmentation.exposure = 1;
  augmentation.saturation = 0.5F;
  out = whole(picture, augmentation, rules);
  CHECK(at(out, shape, 0, 0, 0) == doctest::Approx(0.8));
  CHECK(at(out, shape, 1, 0, 0) == doctest::Approx(0.5));
}

TEST_CASE("colours are left alone in grey pictures") {
  RenderingRules rules = wild_rules({1, 4, 4});
  const Augmentation augmentation = draw_augmentation(rules, {1, 9, 9}, 1, 1, 1);
  CHECK(augmentation.hue == 0);
  CHECK(augmentation.saturation == 1);
  CHECK(augmentation.exposure == 1);
}

TEST_CASE("a convention takes mean and deviation of each channel, in place of -1..1") {
  const MapShape shape{3, 2, 2};
  const Picture picture = random_picture(shape, 5);
  RenderingRules rules = plain_rules(shape);
  rules.crop = partitioner::Crop{};
  rules.convention = {{0.1F, 0.2F, 0.3F}, {0.5F, 0.25F, 2.0F}};
  const std::vector<float> out = whole(picture, centre_crop(rules, shape), rules);
  CHECK(at(out, shape, 1, 1, 0) == doctest::Approx((picture.value(1, 1, 0) - 0.2) / 0.25));
  CHECK(at(out, shape, 2, 0, 1) == doctest::Approx((picture.value(2, 0, 1) - 0.3) / 2));
}

TEST_CASE("an augmentation depends on seed, step and position, and on nothing else") {
  const RenderingRules rules = wild_rules({3, 9, 9});
  const MapShape picture{3, 20, 30};
  const Augmentation once = draw_augmentation(rules, picture, 1, 2, 3);
  CHECK(once == draw_augmentation(rules, picture, 1, 2, 3));
  CHECK(once != draw_augmentation(rules, picture, 2, 2, 3));
  CHECK(once != draw_augmentation(rules, picture, 1, 3, 3));
  CHECK(once != draw_augmentation(rules, picture, 1, 2, 4));
}

TEST_CASE("rules that cannot be followed are refused with the model's name") {
  const auto refusal = [](const RenderingRules& rules) {
    return tests::input_error_of([&] { check_rules(rules, "net.cfg"); });
  };
  CHECK(refusal(wild_rules({3, 8, 8})).empty());
  RenderingRules rules = plain_rules({3, 8, 8});
  rules.augmentation.aspect = 0;
  CHECK(has(refusal(rules), "net.cfg: aspect = 0"));
  rules = plain_rules({3, 8, 8});
  rules.augmentation.hue = std::nan("");
  CHECK(has(refusal(rules), "net.cfg: hue"));
  rules = plain_rules({3, 8, 8});
  rules.augmentation.crop_padding = -1;
  CHECK(has(refusal(rules), "net.cfg: -1 pixels"));
  rules = plain_rules({3, 8, 8});
  rules.picture.rows = 7;
  CHECK(has(refusal(rules), "net.cfg: an input of 8 x 8"));
  rules = plain_rules({3, 8, 8});
  rules.convention.mean = {0.1F, 0.2F};
  CHECK(has(refusal(rules), "net.cfg: 2 numbers"));
  rules.convention = {{}, {0.0F}};
  CHECK(has(refusal(rules), "net.cfg: a standard deviation"));
  rules.convention = {{}, {INFINITY}};
  CHECK(has(refusal(rules), "net.cfg: a standard deviation"));
  rules.convention = {{std::nanf("")}, {}};
  CHECK(has(refusal(rules), "net.cfg: a mean"));
}

TEST_CASE("pictures vary by each rule that draws at random, and by no other") {
  using Rules = RenderingRules;
  using Changes = std::vector<void (*)(Rules&)>;
  const auto varies = [](const Rules& rules) { return varies_pictures(rules, rules.picture); };
  const auto check = [&](const Changes& changes, bool detects, bool expected) {
    for (std::size_t i = 0; i < changes.size(); ++i) {
      CAPTURE(i);
      Rules rules = plain_rules({3, 8, 8});
      rules.detects = detects;
      rules.augmentation.jitter = 0;
      CHECK(!varies(rules));
      changes[i](rules);
      CHECK(varies(rules) == expected);
    }
  };
  const Changes of_all{[](Rules& rules) { rules.augmentation.flip = true; },
                       [](Rules& rules) { rules.augmentation.hue = 0.1; },
                       [](Rules& rules) { rules.augmentation.saturation = 1.5; },
                       [](Rules& rules) { rules.augmentation.exposure = 1.5; },
                       [](Rules& rules) { rules.crop = partitioner::Crop{.flip = true}; },
                       [](Rules& rules) { rules.crop = partitioner::Crop{.saturation = 1.5}; },
                       [](Rules& rules) { rules.crop = partitioner::Crop{.exposure = 1.5}; }};
  const Changes of_classes{[](Rules& rules) { rules.augmentation.angle = 5; },
                           [](Rules& rules) { rules.augmentation.aspect = 1.5; },
                           [](Rules& rules) { rules.augmentation.min_crop = 6; },
                           [](Rules& rules) { rules.augmentation.max_crop = 9; },
                           [](Rules& rules) { rules.augmentation.crop_padding = 1; },
                           [](Rules& rules) { rules.crop = partitioner::Crop{.angle = 5}; },
                           [](Rules& rules) { rules.picture.rows = 9; }};
  const Changes of_detectors{[](Rules& rules) { rules.augmentation.jitter = 0.1; },
                             [](Rules& rules) { rules.augmentation.resize = 1.5; },
                             [](Rules& rules) { rules.augmentation.mosaic = true; },
                             [](Rules& rules) { rules.augmentation.mixup = true; }};
  check(of_all, false, true);
  check(of_all, true, true);
  check(of_classes, false, true);
  check(of_classes, true, false);
  check(of_detectors, false, false);
  check(of_detectors, true, true);
  // What a picture has more than the input is cut off at random.
  CHECK(varies_pictures(plain_rules({3, 8, 8}), MapShape{3, 8, 9}));
  CHECK(varies_pictures(plain_rules({3, 8, 8}), std::nullopt));
  Rules grey = plain_rules({1, 8, 8});
  grey.augmentation.hue = 0.1;
  CHECK(!varies(grey));
  Rules never = plain_rules({3, 8, 8});
  never.detects = true;
  never.augmentation.jitter = 0;
  never.augmentation.mosaic = true;
  never.augmentation.mixup = true;
  never.augmentation.mosaic_share = 0;
  CHECK(!varies(never));
}
