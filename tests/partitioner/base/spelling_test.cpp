#include "partitioner/base/spelling.h"

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

TEST_CASE("the nearest word is one that could have been meant") {
  const std::vector<std::string_view> known{"filters", "size", "steps", "step", "pad", "B1"};
  CHECK(nearest_word("filters", known) == "filters");
  CHECK(nearest_word("FILTERS", known) == "filters");
  CHECK(nearest_word("fitlers", known) == "filters");
  CHECK(nearest_word("filetrss", known) == "filters");
  CHECK(nearest_word("siz", known).empty());  // of three letters none may be wrong
  CHECK(nearest_word("PAD", known) == "pad");
  CHECK(nearest_word("b1", known) == "B1");
  CHECK(nearest_word("stepz", known) == "steps");
  CHECK(nearest_word("steeps", known) == "steps");
  CHECK(nearest_word("wobble", known).empty());
  CHECK(nearest_word("", known).empty());
  CHECK(nearest_word(std::string(100000, 'a'), known).empty());
  CHECK(suggestion("Size", known) == ": did you mean `size`?");
  CHECK(suggestion("colour", known).empty());
}
