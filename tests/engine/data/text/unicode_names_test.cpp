// Names that look alike are alike.

#include "engine/data/text/unicode_names.h"

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

TEST_CASE("a letter and its accent become one letter, other names stay as they are") {
  CHECK(engine::composed("cafe\xcc\x81") == "caf\xc3\xa9");
  CHECK(engine::composed("caf\xc3\xa9") == "caf\xc3\xa9");
  CHECK(engine::composed("A\xcc\x8angstr\xc3\xb6m") == "\xc3\x85ngstr\xc3\xb6m");
  CHECK(engine::composed("cup") == "cup");
  CHECK(engine::composed("").empty());
  CHECK(engine::composed("gr\xfcn") == "gr\xfcn");  // Latin-1
}
