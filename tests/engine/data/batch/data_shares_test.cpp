#include "engine/data/batch/data_shares.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/engine/data/samples.h"
#include "tests/support/random_network.h"
#include <doctest/doctest.h>

#include "engine/data/batch/batch.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

using engine::DataShares;

namespace {

std::vector<Index> random_sizes(tests::Draw& draw) {
  std::vector<Index> sizes(static_cast<std::size_t>(draw.between(1, 6)));
  for (Index& size : sizes) {
    size = draw.among<Index>({0, 1, 3, 17, 400, 5000});
  }
  sizes[0] += 1;
  return sizes;
}

}  // namespace

TEST_CASE("every item of every part is seen once in an epoch, whatever sizes and batch are") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    tests::Draw draw(seed);
    const std::vector<Index> sizes = random_sizes(draw);
    const Index all = std::accumulate(sizes.begin(), sizes.end(), Index{0});
    const Index batch = draw.among<Index>({1, 2, 7, 32, 900});
    const DataShares shares = DataShares::for_training(sizes, batch);
    std::vector<std::vector<Index>> seen(sizes.size());
    // As many passes as epochs end together with.
    const Index passes = std::min<Index>(all / std::gcd(all, batch), 3 * all / batch + 3);
    for (Index pass = 0; pass < passes; ++pass) {
      const std::vector<Index> images = shares.images(pass);
      CHECK(std::accumulate(images.begin(), images.end(), Index{0}) == batch);
      for (std::size_t part = 0; part < sizes.size(); ++part) {
        const std::vector<Index> items = shares.items(pass, static_cast<int>(part), 5);
        REQUIRE(std::ssize(items) == images[part]);
        CHECK(images[part] <= shares.most_images()[part]);
        CHECK(images[part] >= shares.fewest_images()[part]);
        seen[part].insert(seen[part].end(), items.begin(), items.end());
      }
    }
    for (std::size_t part = 0; part < sizes.size(); ++part) {
      for (std::size_t begin = 0;
           begin + static_cast<std::size_t>(sizes[part]) <= seen[part].size() && sizes[part] > 0;
           begin += static_cast<std::size_t>(sizes[part])) {
        std::vector<Index> epoch(seen[part].data() + begin,
                                 seen[part].data() + begin + sizes[part]);
        std::sort(epoch.begin(), epoch.end());
        std::vector<Index> expected(static_cast<std::size_t>(sizes[part]));
        std::iota(expected.begin(), expected.end(), 0);
        CHECK(epoch == expected);
      }
    }
  }
}

TEST_CASE("the first passes have early items alone, and the first epoch every item once") {
  int with_early_passes = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    tests::Draw draw(seed);
    const std::vector<Index> sizes = random_sizes(draw);
    const Index all = std::accumulate(sizes.begin(), sizes.end(), Index{0});
    const Index batch = draw.among<Index>({1, 2, 7, 32});
    engine::EarlyItems early{sizes, 0.25};
    for (Index& size : early.sizes) {
      size = draw.chance(0.3) ? size : draw.between(size / 2, size);
    }
    const DataShares shares = DataShares::for_training(sizes, batch, early);
    const DataShares plain = DataShares::for_training(sizes, batch);
    const Index passes = shares.early_passes();
    CHECK(passes * batch * 4 <= all);
    with_early_passes += passes > 0 ? 1 : 0;
    // Another pass would need what is not there, or be more than the share.
    bool suffices = (passes + 1) * batch * 4 <= all;
    std::vector<Index> needed(sizes.size());
    for (Index pass = 0; pass <= passes; ++pass) {
      const std::vector<Index> images = shares.images(pass);
      CHECK(images == plain.images(pass));
      for (std::size_t part = 0; part < sizes.size(); ++part) {
        needed[part] += images[part];
        suffices = suffices && needed[part] <= early.sizes[part];
      }
    }
    CHECK_FALSE(suffices);
    for (std::size_t part = 0; part < sizes.size(); ++part) {
      std::vector<Index> seen;
      for (Index pass = 0; pass * batch < all; ++pass) {
        for (const Index item : shares.items(pass, static_cast<int>(part), 5)) {
          CHECK((pass >= passes || item < early.sizes[part]));
          seen.push_back(item);
        }
      }
      REQUIRE(std::ssize(seen) >= sizes[part]);
      seen.resize(static_cast<std::size_t>(sizes[part]));  // the last pass reaches on
      std::sort(seen.begin(), seen.end());
      std::vector<Index> expected(seen.size());
      std::iota(expected.begin(), expected.end(), 0);
      CHECK(seen == expected);
      const Index later = all / batch + 2;
      CHECK(shares.items(later, static_cast<int>(part), 5) ==
            plain.items(later, static_cast<int>(part), 5));
    }
  }
  CHECK(with_early_passes > 10);
}

TEST_CASE("after the first passes early and other items come in no order") {
  const DataShares shares = DataShares::for_training({1000}, 10, {{600}, 0.25});
  REQUIRE(shares.early_passes() == 25);
  double early_places = 0;
  for (Index pass = 25; pass < 100; ++pass) {
    for (const Index item : shares.items(pass, 0, 3)) {
      early_places += item < 600 ? static_cast<double>(pass) : 0;
    }
  }
  CHECK(early_places / 350 == doctest::Approx(62).epsilon(0.1));  // the middle of the rest
  CHECK(shares.items(30, 0, 3) != shares.items(30, 0, 4));
}

TEST_CASE("each pass has of each part nearly what it is of all") {
  const std::vector<Index> sizes = {5000, 1200, 300, 77, 1};
  const double all = std::accumulate(sizes.begin(), sizes.end(), 0.0);
  constexpr Index kBatch = 64;
  const DataShares shares = DataShares::for_training(sizes, kBatch);
  for (Index pass = 0; pass < 300; ++pass) {
    const std::vector<Index> images = shares.images(pass);
    for (std::size_t part = 0; part < sizes.size(); ++part) {
      const double fair = kBatch * static_cast<double>(sizes[part]) / all;
      CHECK(std::abs(static_cast<double>(images[part]) - fair) < 2);
    }
  }
}

TEST_CASE("the order depends on the seed alone") {
  const DataShares shares = DataShares::for_training({40, 60}, 10);
  const DataShares again = DataShares::for_training({40, 60}, 10);
  CHECK(shares.items(3, 1, 8) == again.items(3, 1, 8));
  CHECK(shares.items(3, 1, 8) != shares.items(3, 1, 9));
  CHECK(shares.items(0, 0, 8) != shares.items(10, 0, 8));  // another epoch
}

TEST_CASE("a batch larger than the parts together takes from several epochs") {
  const DataShares shares = DataShares::for_training({2, 1}, 7);
  const std::vector<Index> images = shares.images(0);
  CHECK(images[0] + images[1] == 7);
  CHECK(images[0] >= 4);
  CHECK(shares.passes() == 1);
}

TEST_CASE("testing shows each item once, a part at a time as there is room") {
  const DataShares shares = DataShares::for_testing({5, 0, 2, 3}, {2, 4, 3, 0});
  CHECK(shares.size() == 7);  // the last part has no room
  CHECK(shares.passes() == 3);
  CHECK(shares.images(0) == std::vector<Index>{2, 0, 2, 0});
  CHECK(shares.images(2) == std::vector<Index>{1, 0, 0, 0});
  CHECK(shares.images(3) == std::vector<Index>{0, 0, 0, 0});
  CHECK(shares.items(2, 0, 1) == std::vector<Index>{4});
  CHECK(shares.items(0, 2, 1) == std::vector<Index>{0, 1});
}

namespace {

// Pictures [begin, end) of a row, each of its own shade, and of which class it is.
engine::Dataset shaded(Index begin, Index end) {
  engine::BytePictures pictures;
  pictures.shape = {1, 2, 2};
  pictures.class_names = engine::numbered_names(5);
  for (Index i = begin; i < end; ++i) {
    pictures.pixels.insert(pictures.pixels.end(), 4, static_cast<std::uint8_t>(10 * i));
    pictures.labels.push_back(static_cast<std::uint8_t>(i % 5));
  }
  return {std::move(pictures), "made", 1};
}

engine::BatchSource source_of(Index begin, Index end, const DataShares& shares, int part) {
  engine::BatchOptions options;
  options.rules.input = options.rules.picture = {1, 2, 2};
  options.rules.augmentation.angle = 40;  // what is drawn by the place in the batch
  options.batch = 6;
  options.seed = 3;
  options.shares = std::make_shared<const DataShares>(shares);
  options.part = part;
  return {shaded(begin, end), options, "net.cfg"};
}

}  // namespace

TEST_CASE("a source reads the same pictures before and after the others have arrived") {
  // Of this part 0, 3 and 7 leave, and two arrive.
  const DataShares shares = DataShares::for_training({11, 9}, 4, {{9, 9}, 0.25});
  REQUIRE(shares.early_passes() > 0);
  engine::BatchOptions options;
  options.rules.input = options.rules.picture = {1, 2, 2};
  options.batch = 4;
  options.shares = std::make_shared<const DataShares>(shares);
  options.part = 0;
  options.leaving = {0, 3, 7};
  engine::BatchSource source(shaded(0, 12), options, "net.cfg");
  const auto read = [&source](Index pass) {
    std::vector<float> pixels(4 * 4);
    (void)source.read_region(pass, {{0, 4}, {0, 1}, {0, 2}, {0, 2}}, pixels);
    return std::pair(pixels, source.targets(pass));
  };
  const auto before = read(0);
  source.change([](engine::Dataset& dataset) { dataset.append(shaded(20, 22)); });
  CHECK(read(0) == before);
  std::vector<float> of_epoch;
  for (Index pass = 0; pass < 5; ++pass) {
    const auto [pixels, targets] = read(pass);
    for (std::size_t n = 0; n < targets.size(); ++n) {
      if (targets[n]) {
        of_epoch.push_back(std::round(pixels[4 * n] * 25.5F));  // its number
      }
    }
  }
  std::sort(of_epoch.begin(), of_epoch.end());
  CHECK(of_epoch == std::vector<float>{1, 2, 4, 5, 6, 8, 9, 10, 11, 20, 21});
}

TEST_CASE("parts read the batch that one source of all of them reads") {
  const DataShares shares = DataShares::for_training({12, 5, 3}, 6);
  const engine::BatchSource all = source_of(0, 20, shares, engine::BatchOptions::kAllParts);
  const std::vector<Index> ends = {0, 12, 17, 20};
  for (Index pass = 0; pass < 7; ++pass) {
    CAPTURE(pass);
    std::vector<float> whole(6 * 4);
    (void)all.read_region(pass, {{0, 6}, {0, 1}, {0, 2}, {0, 2}}, whole);
    const engine::Targets targets = all.targets(pass);
    const std::vector<Index> images = shares.images(pass);
    Index first = 0;
    for (int part = 0; part < 3; ++part) {
      const auto at = static_cast<std::size_t>(part);
      const engine::BatchSource own = source_of(ends[at], ends[at + 1], shares, part);
      const Range mine{first, first + images[at]};
      std::vector<float> cells(static_cast<std::size_t>(mine.size() * 4));
      (void)own.read_region(pass, {mine, {0, 1}, {0, 2}, {0, 2}}, cells);
      CHECK(std::equal(cells.begin(), cells.end(), whole.data() + first * 4));
      const engine::Targets its = own.targets(pass);
      REQUIRE(its.size() == 6);
      for (Index n = 0; n < 6; ++n) {
        const auto place = static_cast<std::size_t>(n);
        CHECK(its[place] == (mine.begin <= n && n < mine.end ? targets[place] : std::nullopt));
      }
      first = mine.end;
    }
    CHECK(first == 6);
  }
}
