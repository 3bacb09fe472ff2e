#include "partitioner/base/printable.h"

#include <doctest/doctest.h>

#include "partitioner/base/errors.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

TEST_CASE("control characters and bytes that are not UTF-8 are shown as their numbers") {
  CHECK(printable("a\x1b[2Jb") == "a\\x1b[2Jb");
  CHECK(printable("one\ntwo\r\tthree\x7f") == "one\\x0atwo\\x0d\\x09three\\x7f");
  CHECK(printable(std::string_view("\0", 1)) == "\\x00");
  CHECK(printable("\xc2\x9b"
                  "2J") == "\\u009b2J");  // control sequence introducer in UTF-8
  CHECK(printable("\x9b"
                  "2J") == "\\x9b2J");
  CHECK(printable("\xff\xfe") == "\\xff\\xfe");
  CHECK(printable("\xc0\x9b") == "\\xc0\\x9b");           // too long a spelling of ESC
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // a surrogate
  CHECK(printable("a\xe2\x82") == "a\\xe2\\x82");         // cut off
}

TEST_CASE("characters that turn or hide text are shown as their numbers") {
  CHECK(printable("gpj.\u202egnp.jpg") == "gpj.\\u202egnp.jpg");
  CHECK(printable("\u2066x\u2069\u200f") == "\\u2066x\\u2069\\u200f");
  CHECK(printable("\ufeff[net]") == "\\ufeff[net]");
  CHECK(printable("a\u2028b") == "a\\u2028b");
  CHECK(printable("x\U000E0041y") == "x\\ue0041y");
}

TEST_CASE("ordinary names stay as they are") {
  for (const char* name :
       {"", "models/lenet5.cfg", "Bücher/Straße é.png", "写真/猫.jpg", "🐈‍⬛.png", "C:\\x"}) {
    CHECK(printable(name) == name);
  }
}

TEST_CASE("what is printable stays so a second time") {
  const std::string once = printable("\x1b\xff\u202e\\x1b");
  CHECK(printable(once) == once);
}

TEST_CASE("a long text is cut between characters") {
  CHECK(printable_start("abcdef", 6) == "abcdef");
  CHECK(printable_start("abcdef", 5) == "abcde...");
  CHECK(printable_start("abü", 3) == "ab...");
  CHECK(printable_start("ab猫c", 4) == "ab...");
  CHECK(printable_start("\x80\x80\x80\x80\x80\x80", 5) == "\\x80\\x80\\x80\\x80\\x80...");
}

TEST_CASE("an InputError never holds control characters") {
  CHECK(std::string(InputError("a\nb\x1b", 3, "c\rd").what()) == "a\\x0ab\\x1b:3: c\\x0dd");
  CHECK(std::string(InputError("a\x07").what()) == "a\\x07");
}
