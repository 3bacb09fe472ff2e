// What ranks tell each other in words.

#include "engine/comm/texts_of_ranks.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Communicator;

// None, then one more on each rank; the first is empty.
std::vector<std::string> list_of(int rank) {
  std::vector<std::string> list;
  for (int i = 0; i < rank; ++i) {
    list.emplace_back(static_cast<std::size_t>(i), 'a');
  }
  return list;
}

TEST_CASE("each rank learns the lists of all, empty ones and empty texts too") {
  const Communicator world = Communicator::world();
  const auto lists = engine::lists_of_ranks(world, list_of(world.rank()));
  REQUIRE(static_cast<int>(lists.size()) == world.size());
  for (int rank = 0; rank < world.size(); ++rank) {
    CHECK(lists[static_cast<std::size_t>(rank)] == list_of(rank));
  }
}

}  // namespace
