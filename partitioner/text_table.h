// Columns of text that line up: a header, rows, and two spaces between columns. The first columns
// are aligned to the left, numbers to the right.

#pragma once

#include <string>
#include <vector>

namespace partitioner {

enum class Align { Left, Right };

struct Column {
  std::string title;
  Align align = Align::Right;
};

class TextTable {
 public:
  explicit TextTable(std::vector<Column> columns);

  // As many cells as there are columns. A cell of several lines makes a row of several lines.
  void add_row(std::vector<std::string> cells);

  // Lines without blanks at their ends, each with a line break.
  [[nodiscard]] std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;  // the titles first
};

// Words joined by ", ", broken into lines of at most `width` letters where that is possible.
[[nodiscard]] std::string wrapped(const std::vector<std::string>& words, std::size_t width);

}  // namespace partitioner
