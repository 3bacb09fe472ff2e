#include "engine/probe/cold_array.h"

#include <limits>

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

using engine::ColdArray;

TEST_CASE("a trial goes through all of a cold array before it comes back to a place") {
  constexpr Index kSize = 1000;  // which is not aligned
  ColdArray array(engine::aligned_elements(kSize) * 3 + 1);
  float* const first = array.next(kSize);
  float* const second = array.next(kSize);
  float* const third = array.next(kSize);
  CHECK(first == array.all().data());
  CHECK(second == first + engine::aligned_elements(kSize));
  CHECK(third == second + engine::aligned_elements(kSize));
  CHECK(array.next(kSize) == first);  // a fourth would end beyond it
}

TEST_CASE("a cold array becomes longer where a trial takes more, and stays as it is otherwise") {
  ColdArray array(engine::aligned_elements(100));
  float* const before = array.next(100);
  CHECK(!array.fit(100));
  CHECK(array.all().data() == before);
  CHECK(array.fit(1000));
  CHECK(static_cast<Index>(array.all().size()) >= 1000);
  CHECK(array.next(1000) == array.all().data());
}

TEST_CASE("a cold array is as large as memory allows, within bounds") {
  const Index largest = ColdArray::elements(std::numeric_limits<Index>::max());
  CHECK(ColdArray::elements(largest - 1) == largest - 1);
  CHECK(ColdArray::elements(0) > 0);
  CHECK(ColdArray::elements(0) < largest);
}
