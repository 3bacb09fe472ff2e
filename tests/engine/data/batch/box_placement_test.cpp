#include "engine/data/batch/box_placement.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <tuple>

#include "tests/engine/data/samples.h"
#include "tests/support/refusals.h"
#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "engine/data/batch/batch.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

using engine::Augmentation;
using engine::BatchOptions;
using engine::BatchSource;
using engine::Box;
using engine::PictureWindow;
using engine::RenderingRules;
using engine::Split;
using partitioner::MapShape;

namespace {

constexpr MapShape kDetectorInput{3, 48, 64};

RenderingRules detector_rules(const MapShape& input = kDetectorInput) {
  RenderingRules rules;
  rules.input = input;
  rules.picture = input;
  rules.detects = true;
  rules.augmentation.jitter = 0;
  rules.augmentation.flip = false;
  return rules;
}

// Black, with a white rectangle on its pixels [top, bottom) x [left, right).
struct Painted {
  MapShape shape;
  Index left = 0;
  Index top = 0;
  Index right = 0;
  Index bottom = 0;

  [[nodiscard]] engine::Picture picture() const {
    tests::Bytes planes(static_cast<std::size_t>(shape.volume()));
    for (Index c = 0; c < shape.channels; ++c) {
      for (Index row = top; row < bottom; ++row) {
        for (Index col = left; col < right; ++col) {
          planes[static_cast<std::size_t>((c * shape.rows + row) * shape.cols + col)] = 255;
        }
      }
    }
    return tests::picture_of(shape, planes);
  }
  [[nodiscard]] Box box() const {
    const auto cols = static_cast<float>(shape.cols);
    const auto rows = static_cast<float>(shape.rows);
    return {3,
            static_cast<float>(left + right) / 2 / cols,
            static_cast<float>(top + bottom) / 2 / rows,
            static_cast<float>(right - left) / cols,
            static_cast<float>(bottom - top) / rows};
  }
};

// Where the input is nearly white, the smallest box around that; nothing where it nowhere is.
struct Lit {
  double left = 1e9;
  double top = 1e9;
  double right = -1e9;
  double bottom = -1e9;
  [[nodiscard]] bool is_there() const { return right > left; }
};

Lit lit_cells(const std::vector<float>& values, const MapShape& input) {
  Lit lit;
  for (Index row = 0; row < input.rows; ++row) {
    for (Index col = 0; col < input.cols; ++col) {
      if (values[static_cast<std::size_t>(row * input.cols + col)] > 0.75F) {
        lit.left = std::min(lit.left, static_cast<double>(col));
        lit.right = std::max(lit.right, static_cast<double>(col) + 1);
        lit.top = std::min(lit.top, static_cast<double>(row));
        lit.bottom = std::max(lit.bottom, static_cast<double>(row) + 1);
      }
    }
  }
  return lit;
}

// The box is drawn where the pixels are, up to a cell.
void check_covers(const Box& box, const Lit& lit, const MapShape& input) {
  const double cols = static_cast<double>(input.cols);
  const double rows = static_cast<double>(input.rows);
  const double x = static_cast<double>(box.centre_x);
  const double y = static_cast<double>(box.centre_y);
  const double width = static_cast<double>(box.width);
  const double height = static_cast<double>(box.height);
  CHECK(std::abs((x - width / 2) * cols - lit.left) <= 1);
  CHECK(std::abs((x + width / 2) * cols - lit.right) <= 1);
  CHECK(std::abs((y - height / 2) * rows - lit.top) <= 1);
  CHECK(std::abs((y + height / 2) * rows - lit.bottom) <= 1);
}

std::vector<float> rendered(const engine::Picture& picture,
                            const Augmentation& augmentation,
                            const RenderingRules& rules) {
  std::vector<float> values(static_cast<std::size_t>(rules.input.volume()));
  engine::render(picture,
                 augmentation,
                 rules,
                 {{0, 1}, {0, rules.input.channels}, {0, rules.input.rows}, {0, rules.input.cols}},
                 values);
  return values;
}

PictureWindow whole_window(const RenderingRules& rules) {
  return {{0, rules.input.rows}, {0, rules.input.cols}, 1};
}

// A data set of painted pictures, one rectangle on each.
class PaintedSet {
 public:
  explicit PaintedSet(Index size) {
    std::string list;
    for (Index i = 0; i < size; ++i) {
      const Painted painted{{3, 40 + i, 60}, 5 + i, 8, 25 + 2 * i, 30};
      const engine::Picture picture = painted.picture();
      tests::write_png(folder_ / fmt::format("p{}.png", i),
                       static_cast<int>(painted.shape.rows),
                       60,
                       3,
                       {picture.bytes.begin(), picture.bytes.end()});
      const Box box = painted.box();
      tests::write_text(
          folder_ / fmt::format("p{}.txt", i),
          fmt::format(
              "{} {} {} {} {}\n", i % 2, box.centre_x, box.centre_y, box.width, box.height));
      list += fmt::format("p{}.png\n", i);
    }
    tests::write_text(folder_ / "list.txt", list);
    tests::write_text(folder_ / "d.data", "classes=4\ntrain=list.txt\nvalid=list.txt\n");
  }

  [[nodiscard]] BatchSource source(const RenderingRules& rules,
                                   Index batch,
                                   Split split,
                                   Index passes = 1,
                                   Index variants = 0) const {
    return {engine::list_dataset(folder_ / "d.data", split, rules.input.channels),
            {.rules = rules,
             .batch = batch,
             .seed = 5,
             .split = split,
             .passes = passes,
             .variants = variants},
            "net.cfg"};
  }

 private:
  tests::TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("a box stays on its pixels, however a detector's picture is moved, scaled and mirrored") {
  int seen = 0;
  for (Index place = 0; place < 200; ++place) {
    CAPTURE(place);
    RenderingRules rules = detector_rules();
    rules.augmentation.jitter = 0.05 * static_cast<double>(place % 7);
    rules.augmentation.resize = place % 3 == 0 ? 1.0 : place % 3 == 1 ? 1.5 : 0.6;
    rules.augmentation.flip = place % 2 == 0;
    rules.augmentation.letter_box = place % 4 < 2;
    rules.augmentation.top_left = rules.augmentation.letter_box && place % 8 < 4;
    const Painted painted{{3, 60 + place % 50, 90}, 20 + place % 30, 15, 60 + place % 25, 50};
    const engine::Picture picture = painted.picture();
    const Augmentation augmentation = place_picture(rules, picture.shape, 1, 0, place, 0);
    const std::vector<Box> moved =
        boxes_on_input(std::vector{painted.box()}, augmentation, picture.shape, rules);
    const std::vector<Box> kept = boxes_within(moved, whole_window(rules), rules);
    const Lit lit = lit_cells(rendered(picture, augmentation, rules), rules.input);
    if (kept.empty()) {
      CHECK_FALSE(lit.is_there());
    } else if (lit.is_there()) {
      ++seen;
      CHECK(kept[0].label == 3);
      check_covers(kept[0], lit, rules.input);
    }
  }
  CHECK(seen > 150);
}

TEST_CASE("tested pictures are stretched, or with letter_box keep their proportions") {
  const Painted painted{{3, 50, 100}, 0, 0, 100, 50};
  for (const bool letter_box : {false, true}) {
    CAPTURE(letter_box);
    RenderingRules rules = detector_rules({3, 40, 40});
    rules.augmentation.letter_box = letter_box;
    const Augmentation augmentation = whole_picture(rules, painted.shape);
    const std::vector<Box> moved =
        boxes_on_input(std::vector{painted.box()}, augmentation, painted.shape, rules);
    REQUIRE(moved.size() == 1);
    CHECK(moved[0].centre_y == doctest::Approx(0.5));
    CHECK(moved[0].width == doctest::Approx(1));
    CHECK(moved[0].height == doctest::Approx(letter_box ? 0.5 : 1));
    const std::vector<float> values = rendered(painted.picture(), augmentation, rules);
    check_covers(moved[0], lit_cells(values, rules.input), rules.input);
    CHECK(values[5] == (letter_box ? engine::kOutsideOfPicture : 1.0F));
  }
}

TEST_CASE("with letter_box=2 a picture lies at the top left beside YOLOX's grey, also mirrored") {
  for (const MapShape& shape : {MapShape{3, 50, 100}, MapShape{3, 100, 50}}) {
    const bool wide = shape.cols > shape.rows;
    RenderingRules rules = detector_rules({3, 40, 40});
    rules.augmentation.letter_box = true;
    rules.augmentation.top_left = true;
    rules.augmentation.flip = true;
    const Painted painted{shape, 0, 0, shape.cols, shape.rows};
    std::vector<Augmentation> all{whole_picture(rules, shape)};
    for (Index place = 0; place < 8; ++place) {
      all.push_back(place_picture(rules, shape, 1, 0, place, 0));
    }
    CHECK(std::any_of(all.begin(), all.end(), [](const auto& each) { return each.mirrored; }));
    for (const Augmentation& augmentation : all) {
      const Box moved =
          boxes_on_input(std::vector{painted.box()}, augmentation, shape, rules).front();
      CHECK(moved.centre_x == doctest::Approx(wide ? 0.5 : 0.25));
      CHECK(moved.centre_y == doctest::Approx(wide ? 0.25 : 0.5));
      CHECK(moved.width == doctest::Approx(wide ? 1 : 0.5));
      CHECK(moved.height == doctest::Approx(wide ? 0.5 : 1));
      const std::vector<float> values = rendered(painted.picture(), augmentation, rules);
      CHECK(values.front() == 1.0F);
      CHECK(values[40 * 40 - 1] == doctest::Approx(114.0 / 255.0));
    }
  }
}

TEST_CASE("a place on a tested input lies where it was on the picture") {
  for (const int letter_box : {0, 1, 2}) {
    RenderingRules rules = detector_rules();
    rules.augmentation.letter_box = letter_box > 0;
    rules.augmentation.top_left = letter_box == 2;
    for (const MapShape& shape : {MapShape{3, 30, 90}, MapShape{3, 90, 30}, kDetectorInput}) {
      const Augmentation whole = whole_picture(rules, shape);
      const std::vector<Box> boxes{{0, 0.25F, 0.75F, 0.5F, 0.125F}};
      const Box moved = boxes_on_input(boxes, whole, shape, rules).front();
      const auto back = place_on_picture({moved.centre_x, moved.centre_y}, whole, shape, rules);
      CHECK(back.x == doctest::Approx(0.25).epsilon(1e-5));
      CHECK(back.y == doctest::Approx(0.75).epsilon(1e-5));
    }
  }
}

TEST_CASE("boxes end with the picture, and one of which a thousandth is left does not count") {
  const RenderingRules rules = detector_rules();
  const std::vector<Box> left = boxes_within(std::vector<Box>{{0, 0.0F, 0.5F, 0.4F, 0.2F},
                                                              {1, 1.3F, 0.5F, 0.4F, 0.2F},
                                                              {2, 1.0F, 1.0F, 0.1F, 0.1F},
                                                              {3, 0.5F, 0.5F, 0.0009F, 0.5F},
                                                              {4, 1.0995F, 0.5F, 0.2F, 0.5F},
                                                              {5, 0.5F, 0.5F, 3.0F, 3.0F}},
                                             whole_window(rules),
                                             rules);
  REQUIRE(left.size() == 3);
  CHECK(left[0].centre_x == doctest::Approx(0.1));
  CHECK(left[0].width == doctest::Approx(0.2));
  CHECK(left[0].height == doctest::Approx(0.2));
  CHECK(left[1].label == 2);
  CHECK(left[1].centre_x == doctest::Approx(0.975));
  CHECK(left[2] == Box{5, 0.5F, 0.5F, 1.0F, 1.0F});
}

TEST_CASE("jitter moves each side of a picture in or out by its share at most") {
  RenderingRules rules = detector_rules();
  rules.augmentation.jitter = 0.2;
  double least = 1;
  double most = 0;
  for (Index place = 0; place < 500; ++place) {
    const Augmentation augmentation = place_picture(rules, {3, 100, 100}, 1, 0, place, 0);
    const double shown = augmentation.x_per_col * static_cast<double>(rules.input.cols) / 100;
    least = std::min(least, shown);
    most = std::max(most, shown);
  }
  CHECK(least >= 0.6);
  CHECK(least < 0.7);
  CHECK(most <= 1.4);
  CHECK(most > 1.3);
  rules.augmentation.jitter = 3;  // something of the picture is left, whatever it is
  for (Index place = 0; place < 100; ++place) {
    CHECK(place_picture(rules, {3, 100, 100}, 1, 0, place, 0).x_per_col > 0);
  }
}

TEST_CASE("the four pictures of a mosaic meet in a corner, each with its boxes in its quarter") {
  RenderingRules rules = detector_rules();
  rules.augmentation.mosaic = true;
  rules.augmentation.jitter = 0.15;
  rules.augmentation.flip = true;
  const Painted painted{{3, 60, 80}, 10, 10, 70, 50};
  const engine::Picture picture = painted.picture();
  int seen = 0;
  for (Index place = 0; place < 60; ++place) {
    CAPTURE(place);
    CHECK(pictures_at(rules, 1, 0, place) == 4);
    Index cells = 0;
    for (int number = 0; number < 4; ++number) {
      const PictureWindow window = window_at(rules, 1, 0, place, number);
      cells += window.rows.size() * window.cols.size();
      CHECK(window.rows.size() * 5 >= rules.input.rows - 5);
      const Augmentation augmentation = place_picture(rules, picture.shape, 1, 0, place, number);
      const std::vector<Box> kept = boxes_within(
          boxes_on_input(std::vector{painted.box()}, augmentation, picture.shape, rules),
          window,
          rules);
      std::vector<float> values = rendered(picture, augmentation, rules);
      for (Index row = 0; row < rules.input.rows; ++row) {
        for (Index col = 0; col < rules.input.cols; ++col) {
          const bool inside = row >= window.rows.begin && row < window.rows.end &&
                              col >= window.cols.begin && col < window.cols.end;
          float& value = values[static_cast<std::size_t>(row * rules.input.cols + col)];
          value = inside ? value : 0.0F;
        }
      }
      const Lit lit = lit_cells(values, rules.input);
      if (!kept.empty() && lit.is_there()) {
        ++seen;
        check_covers(kept[0], lit, rules.input);
      }
      // The picture's corner, not what was added beside it, lies where the four meet.
      const Index row = number < 2 ? window.rows.end - 1 : window.rows.begin;
      const Index col = number % 2 == 0 ? window.cols.end - 1 : window.cols.begin;
      const float at_corner = values[static_cast<std::size_t>(row * rules.input.cols + col)];
      CHECK(at_corner != engine::kOutsideOfPicture);
    }
    CHECK(cells == rules.input.rows * rules.input.cols);
  }
  CHECK(seen > 150);
}

TEST_CASE("any region of an input made of several pictures has the cells of the whole") {
  const PaintedSet set(6);
  for (const bool mosaic : {true, false}) {
    for (const bool letter_box : {true, false}) {
      CAPTURE(mosaic);
      RenderingRules rules = detector_rules({3, 33, 41});
      rules.augmentation.mosaic = mosaic;
      rules.augmentation.mixup = !mosaic;
      rules.augmentation.letter_box = letter_box;
      rules.augmentation.jitter = 0.3;
      rules.augmentation.flip = true;
      rules.augmentation.hue = 0.1;
      rules.augmentation.saturation = 1.5;
      const BatchSource source = set.source(rules, 4, Split::Train);
      const Region all{{0, 4}, {0, 3}, {0, 33}, {0, 41}};
      std::vector<float> whole(static_cast<std::size_t>(all.volume()));
      (void)source.read_region(3, all, whole);
      for (const Region& part : {Region{{0, 2}, {0, 3}, {0, 16}, {0, 20}},
                                 Region{{1, 4}, {0, 3}, {16, 33}, {5, 41}},
                                 Region{{2, 3}, {1, 2}, {10, 11}, {40, 41}}}) {
        std::vector<float> cells(static_cast<std::size_t>(part.volume()));
        (void)source.read_region(3, part, cells);
        std::size_t next = 0;
        bool same = true;
        for (Index n = part.images.begin; n < part.images.end; ++n) {
          for (Index c = part.channels.begin; c < part.channels.end; ++c) {
            for (Index row = part.rows.begin; row < part.rows.end; ++row) {
              for (Index col = part.cols.begin; col < part.cols.end; ++col) {
                same = same &&
                       cells[next++] ==
                           whole[static_cast<std::size_t>(((n * 3 + c) * 33 + row) * 41 + col)];
              }
            }
          }
        }
        CHECK(same);
      }
      // The batches do not matter, only the place in the epoch.
      const BatchSource others = set.source(rules, 2, Split::Train);
      std::vector<float> half(whole.size() / 2);
      (void)others.read_region(6, {{0, 2}, {0, 3}, {0, 33}, {0, 41}}, half);
      CHECK(std::equal(half.begin(), half.end(), whole.begin()));
      CHECK(others.targets(6)[1] == source.targets(3)[1]);
    }
  }
}

TEST_CASE("a batch's boxes are those of its images as they are rendered") {
  const PaintedSet set(6);
  RenderingRules rules = detector_rules();
  rules.augmentation.jitter = 0.2;
  rules.augmentation.flip = true;
  for (const bool letter_box : {true, false}) {
    for (const Split split : {Split::Train, Split::Test}) {
      rules.augmentation.letter_box = letter_box;
      const BatchSource source = set.source(rules, 6, split);
      const engine::Targets targets = source.targets(0);
      const Region all{{0, 6}, {0, 3}, {0, rules.input.rows}, {0, rules.input.cols}};
      std::vector<float> values(static_cast<std::size_t>(all.volume()));
      (void)source.read_region(0, all, values);
      for (std::size_t n = 0; n < 6; ++n) {
        REQUIRE(targets[n]);
        CHECK_FALSE(targets[n]->label);
        REQUIRE(targets[n]->boxes.size() == 1);
        const auto volume = static_cast<std::ptrdiff_t>(rules.input.volume());
        const auto first = values.begin() + volume * static_cast<std::ptrdiff_t>(n);
        check_covers(engine::converted<float>(targets[n]->boxes[0]),
                     lit_cells({first, first + volume}, rules.input),
                     rules.input);
      }
    }
  }
}

TEST_CASE("mixup lays two pictures over each other, half of the time, with the boxes of both") {
  const PaintedSet set(6);
  RenderingRules rules = detector_rules();
  rules.augmentation.mixup = true;
  const BatchSource source = set.source(rules, 60, Split::Train);
  const engine::Targets targets = source.targets(0);
  const auto mixed = std::count_if(
      targets.begin(), targets.end(), [](const auto& each) { return each->boxes.size() == 2; });
  CHECK(mixed > 15);
  CHECK(mixed < 45);
  const Region all{{0, 60}, {0, 3}, {0, rules.input.rows}, {0, rules.input.cols}};
  std::vector<float> values(static_cast<std::size_t>(all.volume()));
  (void)source.read_region(0, all, values);
  CHECK(std::any_of(values.begin(), values.end(), [](float value) { return value == 0.5F; }));
  CHECK(*std::max_element(values.begin(), values.end()) <= 1.0F);
}

TEST_CASE("mixup lays a picture over a mosaic, half and half, with the boxes of all five") {
  const PaintedSet set(6);
  RenderingRules rules = detector_rules();
  rules.augmentation.mosaic = true;
  rules.augmentation.mixup = true;
  RenderingRules mosaic = rules;
  mosaic.augmentation.mixup = false;
  const Region all{{0, 60}, {0, 3}, {0, rules.input.rows}, {0, rules.input.cols}};
  std::vector<float> mixed(static_cast<std::size_t>(all.volume()));
  std::vector<float> plain(mixed.size());
  const BatchSource source = set.source(rules, 60, Split::Train);
  const BatchSource others = set.source(mosaic, 60, Split::Train);
  (void)source.read_region(0, all, mixed);
  (void)others.read_region(0, all, plain);
  for (Index place = 0; place < 60; ++place) {
    CHECK(pictures_at(rules, 5, 0, place) == 5);
    CHECK(window_at(rules, 5, 0, place, 0).share == 0.5F);
    CHECK(window_at(rules, 5, 0, place, 4).rows == Range{0, rules.input.rows});
    const auto n = static_cast<std::size_t>(place);
    const auto boxes = source.targets(0)[n]->boxes;
    const auto below = others.targets(0)[n]->boxes;
    REQUIRE(boxes.size() == below.size() + 1);
    CHECK(std::equal(below.begin(), below.end(), boxes.begin()));
    // Where the picture over it is white it is half as dark as before.
    const Box over = engine::converted<float>(boxes.back());
    const auto row = static_cast<Index>(over.centre_y * static_cast<float>(rules.input.rows));
    const auto col = static_cast<Index>(over.centre_x * static_cast<float>(rules.input.cols));
    const auto cell = n * static_cast<std::size_t>(rules.input.volume()) +
                      static_cast<std::size_t>(row * rules.input.cols + col);
    CHECK(mixed[cell] == doctest::Approx(0.5 * static_cast<double>(plain[cell]) + 0.5));
  }
  rules.augmentation.mosaic_share = 0.5;
  rules.augmentation.mixup_share = 0.5;
  std::array<int, 6> made{};
  for (Index place = 0; place < 400; ++place) {
    ++made.at(static_cast<std::size_t>(pictures_at(rules, 5, 0, place)));
  }
  CHECK(made[2] == 0);  // mixup is of mosaics
  CHECK(std::abs(made[1] - 200) < 50);
  CHECK(std::abs(made[4] - 100) < 40);
  CHECK(std::abs(made[5] - 100) < 40);
}

TEST_CASE("an image is made of one picture once mosaics have ended, in whatever passes") {
  const PaintedSet set(6);
  RenderingRules rules = detector_rules();
  rules.augmentation.mosaic = true;
  rules.augmentation.mixup = true;
  RenderingRules single = rules;
  single.augmentation.mosaic = false;
  single.augmentation.mixup = false;
  const BatchSource plain = set.source(single, 6, Split::Train);
  BatchSource source = set.source(rules, 6, Split::Train);
  source.end_mosaic(2);
  CHECK(source.targets(1)[0]->boxes.size() > 1);
  CHECK(source.targets(2) == plain.targets(2));
  BatchSource halves = set.source(rules, 3, Split::Train, 2);
  halves.end_mosaic(2);
  CHECK(halves.targets(3)[0]->boxes.size() > 1);
  CHECK(halves.targets(4)[0] == plain.targets(2)[0]);
  CHECK(halves.targets(5)[2] == plain.targets(2)[5]);
}

TEST_CASE("variants of a picture have one mosaic, mixup and boxes each, in any epoch and batch") {
  constexpr Index kSize = 6;
  constexpr Index kImages = 12 * kSize;  // those of the last six epochs without mosaics
  const PaintedSet set(kSize);
  RenderingRules rules = detector_rules();
  rules.augmentation.jitter = 0.2;
  rules.augmentation.flip = true;
  rules.augmentation.hue = 0.1;
  rules.augmentation.mosaic = true;
  rules.augmentation.mosaic_share = 0.7;
  rules.augmentation.mixup = true;
  rules.augmentation.mixup_share = 0.5;
  using Key = std::tuple<Index, Index, bool>;
  struct Looks {
    std::vector<float> pixels;
    std::vector<engine::TargetBox> boxes;
    bool operator==(const Looks&) const = default;
  };
  std::map<Key, Looks> looks;
  Index times = 0;
  std::size_t most_boxes = 0;
  for (const Index batch : {4, 9}) {
    BatchSource source = set.source(rules, batch, Split::Train, 1, 2);
    CHECK(source.variants() == 2);
    source.end_mosaic(kImages / 2 / batch);
    for (Index step = 0; step < kImages / batch; ++step) {
      const auto shown = source.shown_images(step);
      const engine::Targets targets = source.targets(step);
      for (Index position = 0; position < batch; ++position) {
        const auto at = static_cast<std::size_t>(position);
        const auto& [item, variant, plain] = shown[at];
        CHECK(variant == (step * batch + position) / kSize % 2);
        CHECK(plain == (step >= kImages / 2 / batch));
        CHECK((!plain || targets[at]->boxes.size() <= 1));
        most_boxes = std::max(most_boxes, targets[at]->boxes.size());
        Looks now{std::vector<float>(static_cast<std::size_t>(rules.input.volume())),
                  targets[at]->boxes};
        (void)source.read_region(
            step,
            {{position, position + 1}, {0, 3}, {0, rules.input.rows}, {0, rules.input.cols}},
            now.pixels);
        const auto [known, is_new] = looks.try_emplace(Key{item, variant, plain}, now);
        CHECK(known->second == now);
        times += is_new ? 0 : 1;
      }
    }
  }
  CHECK(looks.size() == 4 * kSize);
  CHECK(times == 2 * kImages - 4 * kSize);
  CHECK(most_boxes > 1);
  for (Index item = 0; item < kSize; ++item) {
    CHECK(looks.at({item, 0, false}).pixels != looks.at({item, 1, false}).pixels);
    CHECK(looks.at({item, 0, true}).pixels != looks.at({item, 1, true}).pixels);
  }
}
