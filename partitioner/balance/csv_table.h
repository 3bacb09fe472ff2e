// Tables that spreadsheets write (CSV, RFC 4180): cells in quotes may hold commas, quotes and line
// ends. Blank lines and lines that begin with # are left out, spaces around cells are, too.

#pragma once

#include <string>
#include <vector>

namespace tessera::partitioner {

struct CsvRow {
  int line = 0;  // of the text, on which it begins, from 1 on
  std::vector<std::string> cells;
};

// Throws InputError with the line where quotes do not fit.
[[nodiscard]] std::vector<CsvRow> parse_csv(const std::string& text, const std::string& name);

}  // namespace tessera::partitioner
