#include "partitioner/base/overlaps.h"

#include <vector>

#include "tests/support/random_network.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using namespace tessera::partitioner;  // NOLINT(google-build-using-namespace): a test of this
                                       // namespace

using tests::Draw;

Region random_small_region(Draw& draw) {
  const auto range = [&draw] {
    const Index begin = draw.between(-1, 3);
    return Range{begin, begin + draw.between(0, 3)};
  };
  return {range(), range(), range(), range()};
}

}  // namespace

TEST_CASE("an index of overlaps finds what asking every region finds") {
  Draw draw(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<Region> regions(static_cast<std::size_t>(draw.between(0, 12)));
    for (Region& region : regions) {
      region = random_small_region(draw);
    }
    const Region asked = random_small_region(draw);
    std::vector<int> met(regions.size());
    OverlapIndex(regions).for_each(asked, [&](int number, const Region& shared) {
      const auto at = static_cast<std::size_t>(number);
      ++met[at];
      CHECK(shared == intersect(regions[at], asked));
    });
    for (std::size_t i = 0; i < regions.size(); ++i) {
      CHECK(met[i] == (intersect(regions[i], asked).empty() ? 0 : 1));
    }
  }
}
