#include "engine/chart/text_size.h"

#include <doctest/doctest.h>

namespace tessera::engine {

TEST_CASE("text that fits is kept, and what does not ends with an ellipsis inside its room") {
  for (const std::string& text :
       {std::string("cat"),
        std::string("Donaudampfschifffahrtsgesellschaft"),
        std::string("WWWW MMMM WWWW"),
        std::string("\u65e5\u672c\u306e\u4f1d\u7d71\u7684\u306a\u7740\u7269"),
        std::string("K\u00e4se \u2013 \u03b1\u03b2\u03b3"),
        std::string(1000, 'x')}) {
    CHECK(fitted(text, 1e6) == text);
    for (const double width : {20.0, 60.0, 112.0, 170.0}) {
      const std::string shown = fitted(text, width);
      CHECK(drawn_width(shown) <= width);
      CHECK((shown == text) == (drawn_width(text) <= width));
      CHECK((shown == text || shown.ends_with("\u2026")));
    }
  }
}

TEST_CASE("the width of a text is that of its characters, not of its bytes") {
  CHECK(drawn_width("\u00e4") == drawn_width("a"));
  CHECK(drawn_width("\u65e5") > drawn_width("a"));
  CHECK(drawn_width("M") > drawn_width("i"));
  CHECK(drawn_width("a", 26) == 2 * drawn_width("a", 13));
  CHECK(drawn_width("") == 0);
}

TEST_CASE("bytes that are no text are cut like text") {
  CHECK(drawn_width(fitted("\xff\xfe\xf0 and more of it", 60)) <= 60);
  CHECK(!fitted("\xe6\x97", 20).empty());
}

}  // namespace tessera::engine
