// Columns of text that line up: a header, rows, and spaces between columns. Widths count characters
// of UTF-8, each as wide as one letter. Cells are made printable: names are among them.

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tessera {

enum class Align { Left, Right };

struct Column {
  std::string title;
  Align align = Align::Right;
};

class TextTable {
 public:
  explicit TextTable(std::vector<Column> columns, std::size_t gap = 2);

  // As many cells as there are columns. A cell of several lines makes a row of several lines.
  void add_row(std::vector<std::string> cells);

  // Lines without blanks at their ends, each with a line break.
  [[nodiscard]] std::string text() const;

 private:
  std::vector<Column> columns_;
  std::size_t gap_;                             // spaces between columns
  std::vector<std::vector<std::string>> rows_;  // the titles first
};

// Characters of a text in UTF-8.
[[nodiscard]] std::size_t text_width(std::string_view text);

// The text, or as much of it as fits into `width` characters with "..." after it.
[[nodiscard]] std::string shortened(const std::string& text, std::size_t width);

// Words joined by ", ", broken into lines of at most `width` letters where that is possible.
[[nodiscard]] std::string wrapped(const std::vector<std::string>& words, std::size_t width);

// Words of `text` in lines of at most `width` letters, each after the first indented.
[[nodiscard]] std::string in_lines(const std::string& text, std::size_t width, std::size_t indent);

}  // namespace tessera
