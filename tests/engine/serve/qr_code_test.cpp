#include "engine/serve/qr_code.h"

#include <string>

#include "tests/support/refusals.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::qr_lines;
using engine::qr_modules;
using tests::has;

TEST_CASE("two rows of modules are a line, black on white within four modules of white") {
  const auto lines = qr_lines({{true, false, true}, {true, true, false}, {false, true, false}});
  REQUIRE(lines.size() == 6);
  const std::string white = "\x1b[38;5;16;48;5;231m";
  CHECK(lines[0] == white + "           \x1b[0m");
  CHECK(lines[2] == white + "    █▄▀    \x1b[0m");
  CHECK(lines[3] == white + "     ▀     \x1b[0m");
  CHECK(lines[5] == lines[0]);
  CHECK(qr_lines({}).empty());
}

#ifdef TESSERA_HAS_QRENCODE
TEST_CASE("an address is a square of modules with three corners to find it by") {
  const auto modules = qr_modules("http://192.168.1.7:8080/0123456789abcdef0123456789abcdef/");
  REQUIRE(modules.size() >= 21);
  const std::size_t last = modules.size() - 7;
  for (const auto& [row, col] : {std::pair(std::size_t{0}, std::size_t{0}), {0, last}, {last, 0}}) {
    for (std::size_t i = 0; i < 7; ++i) {
      CHECK(modules[row][col + i]);
      CHECK(modules[row + i][col]);
      CHECK(modules[row + 3][col + i] == (i != 1 && i != 5));
    }
  }
  CHECK(qr_modules(std::string(10'000, 'a')).empty());
}
#endif

}  // namespace
