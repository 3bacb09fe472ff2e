// JSON that somebody else may have written.

#include "engine/files/json_text.h"

#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  const tests::TemporaryFolder folder;
  tests::put_bytes(folder / "lines", text);
  std::vector<std::string> lines;
  engine::for_each_json_line(folder / "lines",
                             [&](const std::string& line) { lines.push_back(line); });
  return lines;
}

}  // namespace

TEST_CASE("brackets in strings are not depth, deep ones are") {
  CHECK(engine::is_shallow_json(R"({"a":[1,{"b":[]}]})"));
  CHECK(engine::is_shallow_json("\"" + std::string(1000, '[') + "\""));
  CHECK(engine::is_shallow_json(R"({"a":"\"[","b":1})"));
  CHECK_FALSE(engine::is_shallow_json(std::string(1000, '[')));
  std::string wide;
  for (int i = 0; i < 1000; ++i) {
    wide += "[]";
  }
  CHECK(engine::is_shallow_json(wide));
}

TEST_CASE("a text that is too long, too deep or not there is nothing") {
  const tests::TemporaryFolder folder;
  tests::put_bytes(folder / "deep", std::string(1000, '['));
  tests::put_bytes(folder / "good", "{\"a\":1}");
  CHECK_FALSE(engine::read_json_text(folder / "deep"));
  CHECK_FALSE(engine::read_json_text(folder / "none"));
  CHECK_FALSE(engine::read_json_text(folder.path()));
  CHECK(engine::read_json_text(folder / "good") == "{\"a\":1}");
  CHECK_FALSE(engine::read_json_text(folder / "good", 6));
}

TEST_CASE("lines come one by one, the last one also without an end, but no endless ones") {
  CHECK(lines_of("a\nb\n") == std::vector<std::string>{"a", "b"});
  CHECK(lines_of("a\n\nb") == std::vector<std::string>{"a", "", "b"});
  CHECK(lines_of("").empty());
  const std::string longest(engine::kMostJsonLine, 'x');
  CHECK(lines_of("a\n" + longest + "\n" + longest + "x\nb\n" + std::string(1000, '[') + "\nc") ==
        std::vector<std::string>{"a", longest, "b", "c"});
}
