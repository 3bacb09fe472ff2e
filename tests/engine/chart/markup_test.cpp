#include "engine/chart/markup.h"

#include <limits>

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::coordinate;
using engine::escaped;

TEST_CASE("nothing of a text can end an element, an attribute or a line of a page") {
  CHECK(escaped("<b>\"a\" & 'b'</b>") == "&lt;b&gt;&quot;a&quot; &amp; &#39;b&#39;&lt;/b&gt;");
  CHECK(escaped("two\nlines") == "two\\x0alines");
  CHECK(escaped("\xff") == "\\xff");
  CHECK(escaped("\u202etxt.exe") == "\\u202etxt.exe");
  CHECK(escaped("Übergröße 桜") == "Übergröße 桜");
}

TEST_CASE("coordinates have one decimal at most, and are always numbers") {
  CHECK(coordinate(12) == "12");
  CHECK(coordinate(12.34) == "12.3");
  CHECK(coordinate(-0.01) == "0");
  CHECK(coordinate(1e-9) == "0");
  CHECK(coordinate(std::numeric_limits<double>::quiet_NaN()) == "0");
  CHECK(coordinate(std::numeric_limits<double>::infinity()) == "0");
}

}  // namespace
