#include "engine/data/batch/batch.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

#include "tests/engine/data/samples.h"
#include "tests/support/refusals.h"
#include <doctest/doctest.h>

#include "engine/data/batch/shuffle.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

using engine::BatchOptions;
using engine::BatchSource;
using engine::Split;

namespace {

constexpr partitioner::MapShape kInput{3, 8, 8};

// `size` pictures, larger than the input by one row; labels 0 to 9 in turn.
BatchSource source(
    Index size, Index batch, Split split, std::uint64_t seed = 1, Index variants = 0) {
  engine::BytePictures pictures;
  pictures.shape = {3, 9, 8};
  pictures.pixels = tests::random_bytes(size * pictures.shape.volume(), 77);
  for (Index i = 0; i < size; ++i) {
    pictures.labels.push_back(static_cast<std::uint8_t>(i % 10));
  }
  pictures.class_names = engine::numbered_names(10);
  BatchOptions options;
  options.rules.input = kInput;
  options.rules.picture = kInput;
  options.rules.augmentation.angle = 20;
  options.rules.augmentation.hue = 0.1;
  options.batch = batch;
  options.seed = seed;
  options.split = split;
  options.variants = variants;
  return {engine::Dataset(std::move(pictures), "made", 3), options, "net.cfg"};
}

// The order of an epoch.
std::vector<Index> shuffled_items(Index size, std::uint64_t seed, Index epoch) {
  std::vector<Index> order;
  for (Index place = 0; place < size; ++place) {
    order.push_back(engine::shuffled_item(size, seed, epoch, place));
  }
  return order;
}

}  // namespace

TEST_CASE("the order of an epoch is a permutation of any number of items") {
  for (const Index size : {1, 2, 3, 4, 5, 7, 16, 17, 63, 64, 65, 1000, 4097}) {
    CAPTURE(size);
    std::vector<Index> order = shuffled_items(size, 3, 8);
    CHECK(order == shuffled_items(size, 3, 8));
    std::sort(order.begin(), order.end());
    std::vector<Index> all(static_cast<std::size_t>(size));
    std::iota(all.begin(), all.end(), 0);
    CHECK(order == all);
  }
}

TEST_CASE("the order differs by epoch and by seed, and never changes between versions") {
  CHECK(shuffled_items(1000, 3, 0) != shuffled_items(1000, 3, 1));
  CHECK(shuffled_items(1000, 3, 0) != shuffled_items(1000, 4, 0));
  CHECK(shuffled_items(8, 42, 1) == std::vector<Index>{2, 3, 1, 0, 5, 6, 4, 7});
}

TEST_CASE("every item comes equally often to every place, and neighbours part") {
  for (const Index size : {3, 10, 13}) {
    CAPTURE(size);
    constexpr Index kEpochs = 20000;
    std::vector<double> counts(static_cast<std::size_t>(size * size));
    std::vector<double> followers(static_cast<std::size_t>(size * size));
    for (Index epoch = 0; epoch < kEpochs; ++epoch) {
      const std::vector<Index> order = shuffled_items(size, 5, epoch);
      for (std::size_t place = 0; place < order.size(); ++place) {
        counts[place * order.size() + static_cast<std::size_t>(order[place])] += 1;
        if (place > 0) {
          followers[static_cast<std::size_t>(order[place - 1] * size + order[place])] += 1;
        }
      }
    }
    const double expected = static_cast<double>(kEpochs) / static_cast<double>(size);
    for (const double count : counts) {
      CHECK(std::abs(count - expected) < 5 * std::sqrt(expected));
    }
    for (std::size_t i = 0; i < followers.size(); ++i) {
      if (i % static_cast<std::size_t>(size + 1) != 0) {  // nothing follows itself
        CHECK(std::abs(followers[i] - expected) < 5 * std::sqrt(expected));
      }
    }
  }
}

TEST_CASE("training visits every item once per epoch, epochs without a gap") {
  const BatchSource batches = source(10, 4, Split::Train);
  std::vector<Index> visited;
  for (Index step = 0; step < 5; ++step) {
    const std::vector<Index> items = batches.items(step);
    CHECK(items.size() == 4);
    CHECK(batches.valid(step) == 4);
    visited.insert(visited.end(), items.begin(), items.end());
    const engine::Targets targets = batches.targets(step);
    for (std::size_t i = 0; i < items.size(); ++i) {
      CHECK(targets[i]->label == items[i] % 10);
    }
  }
  std::vector<Index> expected = shuffled_items(10, 1, 0);
  const std::vector<Index> second = shuffled_items(10, 1, 1);
  expected.insert(expected.end(), second.begin(), second.end());
  CHECK(visited == expected);
}

TEST_CASE("a batch larger than the data set takes from several epochs") {
  const BatchSource batches = source(3, 8, Split::Train);
  std::vector<Index> items = batches.items(0);
  std::sort(items.begin(), items.begin() + 3);
  std::sort(items.begin() + 3, items.begin() + 6);
  CHECK(std::vector<Index>(items.begin(), items.begin() + 6) ==
        std::vector<Index>{0, 1, 2, 0, 1, 2});
}

TEST_CASE("testing takes items in order, and the places left over are empty") {
  const BatchSource batches = source(6, 4, Split::Test);
  CHECK(batches.items(1) == std::vector<Index>{4, 5, -1, -1});
  CHECK(batches.targets(1) == engine::Targets{engine::ImageTargets{.label = 4},
                                              engine::ImageTargets{.label = 5},
                                              std::nullopt,
                                              std::nullopt});
  CHECK(batches.valid(0) == 4);
  CHECK(batches.valid(1) == 2);
  CHECK(batches.valid(2) == 0);
  const Region last{{3, 4}, {0, 3}, {0, 8}, {0, 8}};
  std::vector<float> out(static_cast<std::size_t>(last.volume()), 7.0F);
  batches.read_region(1, last, out);
  CHECK(std::count(out.begin(), out.end(), 0.0F) == last.volume());
}

TEST_CASE("a region of a batch has the bits of those cells of the whole batch") {
  const BatchSource batches = source(20, 6, Split::Train);
  const Region all{{0, 6}, {0, 3}, {0, 8}, {0, 8}};
  std::vector<float> whole(static_cast<std::size_t>(all.volume()));
  batches.read_region(7, all, whole);
  const Region region{{2, 5}, {1, 3}, {3, 8}, {0, 5}};
  std::vector<float> part(static_cast<std::size_t>(region.volume()));
  batches.read_region(7, region, part);
  std::size_t cell = 0;
  bool same = true;
  for (Index n = 2; n < 5; ++n) {
    for (Index c = 1; c < 3; ++c) {
      for (Index h = 3; h < 8; ++h) {
        for (Index w = 0; w < 5; ++w) {
          same = same &&
                 part[cell++] == whole[static_cast<std::size_t>(((n * 3 + c) * 8 + h) * 8 + w)];
        }
      }
    }
  }
  CHECK(same);
  batches.read_region(7, Region{{6, 6}, {0, 3}, {0, 8}, {0, 8}}, {});
}

TEST_CASE("a picture is read once, however many places it has, and only for images of the region") {
  const auto pictures_read = [](const BatchSource& batches, Index step, const Region& region) {
    std::vector<float> out(static_cast<std::size_t>(region.volume()));
    return batches.read_region(step, region, out).pictures;
  };
  const BatchSource few = source(3, 8, Split::Train);
  CHECK(pictures_read(few, 0, {{0, 8}, {0, 3}, {0, 8}, {0, 8}}) == 3);
  const BatchSource many = source(20, 6, Split::Train);
  CHECK(pictures_read(many, 1, {{0, 6}, {0, 3}, {0, 8}, {0, 8}}) == 6);
  CHECK(pictures_read(many, 1, {{2, 4}, {0, 3}, {5, 8}, {0, 3}}) == 2);
  CHECK(pictures_read(many, 1, {{2, 2}, {0, 3}, {0, 8}, {0, 8}}) == 0);
  CHECK(pictures_read(source(6, 4, Split::Test), 1, {{0, 4}, {0, 3}, {0, 8}, {0, 8}}) == 2);
}

TEST_CASE("the places of one picture in a batch are augmented each in its own way") {
  const BatchSource batches = source(1, 4, Split::Train);
  const Region all{{0, 4}, {0, 3}, {0, 8}, {0, 8}};
  std::vector<float> out(static_cast<std::size_t>(all.volume()));
  batches.read_region(0, all, out);
  const std::size_t volume = out.size() / 4;
  for (Index image = 0; image < 4; ++image) {
    const Region one{{image, image + 1}, {0, 3}, {0, 8}, {0, 8}};
    std::vector<float> alone(volume);
    batches.read_region(0, one, alone);
    const float* const begin = out.data() + image * static_cast<Index>(volume);
    CHECK(std::equal(alone.begin(), alone.end(), begin));
    CHECK((image == 0 || !std::equal(alone.begin(), alone.end(), out.begin())));
  }
}

TEST_CASE("the same seed gives the same batch and another seed another") {
  const Region all{{0, 4}, {0, 3}, {0, 8}, {0, 8}};
  std::vector<float> first(static_cast<std::size_t>(all.volume()));
  std::vector<float> again = first;
  std::vector<float> other = first;
  source(20, 4, Split::Train, 5).read_region(2, all, first);
  source(20, 4, Split::Train, 5).read_region(2, all, again);
  source(20, 4, Split::Train, 6).read_region(2, all, other);
  CHECK(first == again);
  CHECK(first != other);
}

TEST_CASE("a variant of a picture is drawn by seed, picture and its number, whatever the batch") {
  constexpr Index kSize = 10;
  const Region one{{0, 1}, {0, 3}, {0, 8}, {0, 8}};
  for (const Index variants : {0, 1, 3}) {
    for (const Index batch : {4, 7, 25}) {  // epochs end within a batch
      CAPTURE(variants);
      CAPTURE(batch);
      const BatchSource batches = source(kSize, batch, Split::Train, 6, variants);
      CHECK(batches.variants() == variants);
      for (Index place = 0; place < 6 * kSize; ++place) {
        const Index step = place / batch;
        const Index position = place % batch;
        const Index epoch = place / kSize;
        const Index item = engine::shuffled_item(kSize, 6, epoch, place % kSize);
        const Index variant = variants > 0 ? epoch % variants : epoch;
        CHECK(batches.shown_images(step)[static_cast<std::size_t>(position)] ==
              BatchSource::ShownImage{item, variant, false});
        Region region = one;
        region.images = {position, position + 1};
        std::vector<float> found(static_cast<std::size_t>(one.volume()));
        std::vector<float> expected = found;
        (void)batches.read_region(step, region, found);
        const engine::Picture picture = batches.dataset().read(item, batches.detail());
        const engine::RenderingRules& rules = batches.rules(step);
        const auto drawn = draw_augmentation(
            rules, picture.shape, 6, variant, variants > 0 ? item : place % kSize);
        render(picture, drawn, rules, one, expected);
        REQUIRE(found == expected);
        if (variants > 1) {
          render(picture,
                 draw_augmentation(rules, picture.shape, 6, (variant + 1) % variants, item),
                 rules,
                 one,
                 expected);
          CHECK(found != expected);
        }
      }
    }
  }
}

TEST_CASE("where nothing varies there is one variant of a picture, whatever is asked for") {
  const auto variants = [](Split split, const partitioner::MapShape& shape, bool flip) {
    engine::BytePictures pictures;
    pictures.shape = shape;
    pictures.pixels = tests::random_bytes(shape.volume(), 77);
    BatchOptions options;
    options.rules.input = kInput;
    options.rules.picture = kInput;
    options.rules.augmentation.flip = flip;
    options.split = split;
    options.variants = 3;
    return BatchSource(engine::Dataset(std::move(pictures), "made", 3), options, "net.cfg")
        .variants();
  };
  CHECK(variants(Split::Train, {1, 8, 8}, false) == 1);
  CHECK(variants(Split::Train, {3, 8, 8}, true) == 3);
  CHECK(variants(Split::Train, {3, 9, 8}, false) == 3);  // which rows are shown differs
  CHECK(variants(Split::Test, {3, 9, 8}, true) == 1);
  const BatchSource tested = source(6, 4, Split::Test, 1, 3);
  CHECK(tested.shown_images(1)[1] == BatchSource::ShownImage{5, 0, false});
  CHECK(tested.shown_images(1)[2] == BatchSource::ShownImage());
}

TEST_CASE("rules that cannot be followed are refused with the model's name before any step") {
  engine::BytePictures pictures{{1, 2, 2}, {1, 2, 3, 4}, {0}, {"0"}};
  BatchOptions options;
  options.rules.input = {1, 2, 2};
  options.rules.picture = {1, 1, 1};
  const std::string message = tests::input_error_of([&] {
    const BatchSource made(engine::Dataset(std::move(pictures), "made", 1), options, "net.cfg");
  });
  CHECK(tests::has(message, "net.cfg:"));
}

TEST_CASE("images of a step have its size, and are held in the detail of the largest") {
  const partitioner::InputSizes sizes({16, 16}, 1.4, 4);
  const engine::InputSchedule schedule(sizes, 5);
  engine::BytePictures pictures;
  pictures.shape = {3, 64, 64};
  pictures.pixels = tests::random_bytes(6 * pictures.shape.volume(), 77);
  pictures.labels.assign(6, 0);
  pictures.class_names = engine::numbered_names(10);
  BatchOptions options;
  options.rules.input = {3, 16, 16};
  options.rules.picture = options.rules.input;
  options.rules.detects = true;
  options.batch = 2;
  options.seed = 5;
  options.passes = 3;
  const auto batches = [&](BatchOptions with) {
    return BatchSource(engine::Dataset(pictures, "made", 3), std::move(with), "net.cfg");
  };
  options.sizes = std::make_shared<const engine::InputSchedule>(schedule);
  const BatchSource scaled = batches(options);
  options.variants = 1;
  const BatchSource fixed = batches(options);
  options.variants = 0;
  options.sizes = nullptr;
  const BatchSource plain = batches(options);
  const auto side = sizes.largest().rows;
  CHECK(scaled.detail().rows ==
        doctest::Approx(static_cast<double>(plain.detail().rows * side) / 16).epsilon(0.1));
  bool changes = false;
  for (Index pass = 0; pass < 120; ++pass) {
    const partitioner::InputSize& size = schedule.at(pass / 3);
    changes = changes || size != sizes.largest();
    REQUIRE(size_of(scaled.rules(pass).input) == size);
    REQUIRE(size_of(scaled.rules(pass).picture) == size);
  }
  CHECK(changes);
  // A variant of a picture looks the same in any step of one size.
  const Region first{{0, 1}, {0, 3}, {0, side}, {0, side}};
  std::vector<float> seen(static_cast<std::size_t>(first.volume()));
  std::vector<float> again(seen.size());
  (void)fixed.read_region(0, first, seen);
  Index times = 0;
  for (Index pass = 3; pass < 30; ++pass) {
    if (fixed.items(pass)[0] == fixed.items(0)[0]) {
      (void)fixed.read_region(pass, first, again);
      CHECK(again == seen);
      ++times;
    }
  }
  CHECK(times > 0);
  // All of the largest: as a source of that size has it.
  options.rules = rules_of_size(options.rules, sizes.largest());
  const BatchSource large = batches(options);
  const Region whole{{0, 2}, {0, 3}, {0, side}, {0, side}};
  std::vector<float> found(static_cast<std::size_t>(whole.volume()));
  std::vector<float> expected(found.size());
  (void)scaled.read_region(1, whole, found);
  (void)large.read_region(1, whole, expected);
  CHECK(found == expected);
}
