// Networks that are judged by boxes.

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/like_one_tile.h"
#include <doctest/doctest.h>

#include "engine/base/random.h"
#include "partitioner/network/losses.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::NamedTensor;

constexpr int kHeadCases = 60;

// From no boxes to all that there is room for, by image; sizes from small to larger than the image.
NamedTensor random_boxes(Index batch, std::uint64_t seed) {
  constexpr Index kMost = 5;
  tests::Draw draw(seed);
  NamedTensor boxes{{batch, kMost, 5}, {}};
  const auto fraction = [&] { return static_cast<double>(draw.between(1, 1000)) / 1000; };
  for (Index n = 0; n < batch; ++n) {
    const Index count = draw.between(0, kMost);
    for (Index i = 0; i < kMost; ++i) {
      // Classes beyond those of a head do not count for it.
      const double label = i < count ? static_cast<double>(draw.between(0, 4)) : -1;
      boxes.values.insert(boxes.values.end(),
                          {label, fraction(), fraction(), fraction(), fraction()});
    }
  }
  return boxes;
}

tests::RandomCase random_detector(std::uint64_t seed, int ranks) {
  tests::Draw draw(seed);
  tests::RandomCase result;
  result.batch = draw.between(1, 4);
  do {
    result.network = tests::random_network(draw, {.batch = result.batch, .most_layers = 6});
  } while (!losses(result.network).empty());
  tests::add_heads(draw, result.network);
  result.partition = tests::random_partition(draw, result.network, result.batch, ranks);
  tests::draw_recomputation(draw, result.partition);
  return result;
}

TEST_CASE("with heads of detectors any partition computes what one tile computes") {
  for (int i = 0; i < kHeadCases; ++i) {
    const std::uint64_t seed = tests::case_seed(i, tests::ranks());
    const tests::RandomCase random = random_detector(seed, tests::ranks());
    tests::NamedTensors in = tests::random_tensors(random.network, random.batch, seed);
    in["boxes"] = random_boxes(random.batch, seed);
    CAPTURE(seed);
    const tests::NamedTensors found =
        tests::check_like_one_tile(random.network, random.partition, random.batch, in);
    if (engine::Communicator::world().rank() == 0) {
      CHECK(found.count("loss") == 1);
    }
  }
}

TEST_CASE("a head without boxes passes its true gradient back, whatever the partition") {
  for (int i = 0; i < kHeadCases / 4; ++i) {
    const std::uint64_t seed = tests::case_seed(i, tests::ranks()) + 500;
    const tests::RandomCase random = random_detector(seed, tests::ranks());
    CAPTURE(seed);
    tests::check_like_one_tile(random.network, random.partition, random.batch);
  }
}

}  // namespace
