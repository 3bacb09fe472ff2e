#include "partitioner/balance/csv_table.h"

#include <algorithm>
#include <csv.h>
#include <string_view>
#include <utility>

#include "partitioner/base/errors.h"

namespace tessera::partitioner {

namespace {

// What libcsv calls back for.
struct CsvReading {
  std::vector<CsvRow> rows;
  CsvRow row;
  int line = 0;

  static void add_cell(void* text, std::size_t bytes, void* reading) {
    auto& self = *static_cast<CsvReading*>(reading);
    if (self.row.cells.empty()) {
      self.row.line = self.line;
    }
    self.row.cells.emplace_back(static_cast<const char*>(text), bytes);
  }
  static void end_row(int /*terminator*/, void* reading) {
    auto& self = *static_cast<CsvReading*>(reading);
    self.rows.push_back(std::exchange(self.row, {}));
  }
};

class CsvParser {
 public:
  CsvParser() { ::csv_init(&parser_, CSV_STRICT | CSV_STRICT_FINI); }
  ~CsvParser() { ::csv_free(&parser_); }
  CsvParser(const CsvParser&) = delete;
  CsvParser& operator=(const CsvParser&) = delete;

  // False where the text is no CSV.
  [[nodiscard]] bool take(std::string_view text, CsvReading& reading) {
    return ::csv_parse(&parser_,
                       text.data(),
                       text.size(),
                       CsvReading::add_cell,
                       CsvReading::end_row,
                       &reading) == text.size();
  }
  [[nodiscard]] bool finish(CsvReading& reading) {
    return ::csv_fini(&parser_, CsvReading::add_cell, CsvReading::end_row, &reading) == 0;
  }

 private:
  csv_parser parser_{};
};

bool is_remark(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(" \t");
  return begin != std::string_view::npos && line[begin] == '#';
}

}  // namespace

std::vector<CsvRow> parse_csv(const std::string& text, const std::string& name) {
  CsvParser parser;
  CsvReading reading;
  const auto expect = [&](bool fits) {
    if (!fits) {
      throw InputError(name, reading.line, "quotes around a cell of this line do not fit together");
    }
  };
  bool inside = false;  // a cell in quotes goes on from the line before
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    ++reading.line;
    if (inside || !is_remark(line)) {
      const std::size_t rows = reading.rows.size();
      expect(parser.take(line, reading));
      const bool blank = line.find_first_not_of(" \t\r\n") == std::string_view::npos;
      inside = reading.rows.size() == rows && !(blank && !inside);
    }
    begin = end;
  }
  expect(parser.finish(reading));
  return std::move(reading.rows);
}

}  // namespace tessera::partitioner
