#include "engine/supervisor/quorum.h"

#include <doctest/doctest.h>

namespace tessera::engine {

TEST_CASE("more than half of the devices of the last step go on, less than half do not") {
  CHECK(quorum_of({0, 1, 2, 3}, {1, 2, 3}) == Quorum::Enough);
  CHECK(quorum_of({0, 1, 2, 3}, {0}) == Quorum::TooFew);
  CHECK(quorum_of({0, 1, 2}, {2}) == Quorum::TooFew);
  CHECK(quorum_of({5}, {5}) == Quorum::Enough);
  CHECK(quorum_of({5}, {}) == Quorum::TooFew);
}

TEST_CASE("exactly half is neither") {
  CHECK(quorum_of({0, 1, 2, 3}, {0, 3}) == Quorum::Half);
  CHECK(quorum_of({0, 1}, {1}) == Quorum::Half);
}

TEST_CASE("devices that the last step did not have do not count") {
  CHECK(quorum_of({0, 1, 2, 3}, {0, 4, 5, 6}) == Quorum::TooFew);
  CHECK(quorum_of({0, 1}, {1, 2, 3}) == Quorum::Half);
}

TEST_CASE("two parts of a network never both have enough") {
  const std::vector<int> all{0, 1, 2, 3, 4};
  for (unsigned part = 0; part < 32; ++part) {
    std::vector<int> here;
    std::vector<int> there;
    for (const int device : all) {
      ((part >> static_cast<unsigned>(device) & 1U) != 0 ? here : there).push_back(device);
    }
    CHECK((quorum_of(all, here) == Quorum::Enough) != (quorum_of(all, there) == Quorum::Enough));
  }
}

}  // namespace tessera::engine
