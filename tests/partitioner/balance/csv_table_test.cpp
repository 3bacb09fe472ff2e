// Tables as spreadsheets write them.

#include "partitioner/balance/csv_table.h"

#include <string>
#include <vector>

#include "tests/support/refusals.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using Cells = std::vector<std::string>;

std::vector<Cells> cells_of(const std::string& text) {
  std::vector<Cells> all;
  for (const partitioner::CsvRow& row : partitioner::parse_csv(text, "t.csv")) {
    all.push_back(row.cells);
  }
  return all;
}

TEST_CASE("cells may be in quotes, with commas, quotes and line ends inside") {
  CHECK(cells_of("a,\"b, c\",\"say \"\"d\"\"\"\n1,\"two\nlines\",3\n") ==
        std::vector<Cells>{{"a", "b, c", "say \"d\""}, {"1", "two\nlines", "3"}});
}

TEST_CASE("lines end in any system's way, and the last one need not") {
  CHECK(cells_of("a,b\r\n1,2") == std::vector<Cells>{{"a", "b"}, {"1", "2"}});
  CHECK(cells_of("").empty());
  CHECK(cells_of("a,\n,b\n") == std::vector<Cells>{{"a", ""}, {"", "b"}});
}

TEST_CASE("rows know their lines, and blank ones and remarks are left out, but not inside quotes") {
  const auto rows = partitioner::parse_csv(
      "# first\n\n a , b \n  # second, \"half\n\"x\n# y\",z\n\n1,2\n", "t.csv");
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].line == 3);
  CHECK(rows[0].cells == Cells{"a", "b"});
  CHECK(rows[1].cells == Cells{"x\n# y", "z"});
  CHECK(rows[2].line == 8);
}

TEST_CASE("quotes that do not fit are refused, with the line") {
  const auto refusal = [](const std::string& text) {
    return tests::input_error_of([&] { (void)partitioner::parse_csv(text, "t.csv"); });
  };
  CHECK(tests::has(refusal("a,b\n1,\"2\" 3\n"), "t.csv:2: "));
  CHECK(tests::has(refusal("a,\"b\n1,2\n"), "t.csv:2: "));
}

}  // namespace
