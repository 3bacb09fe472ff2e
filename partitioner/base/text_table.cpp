#include "partitioner/base/text_table.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "partitioner/base/errors.h"
#include "partitioner/base/printable.h"

namespace tessera {

namespace {

// Bytes 10xxxxxx continue the character before.
bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0U) != 0x80U;
}

std::vector<std::string> lines_of(const std::string& cell) {
  std::vector<std::string> lines(1);
  for (const char letter : cell) {
    if (letter == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += letter;
    }
  }
  for (std::string& line : lines) {
    line = printable(line);
  }
  return lines;
}

void append_padded(std::string& line, const std::string& word, std::size_t width, Align align) {
  const std::string blanks(width - text_width(word), ' ');
  line += align == Align::Right ? blanks + word : word + blanks;
}

}  // namespace

TextTable::TextTable(std::vector<Column> columns, std::size_t gap)
    : columns_(std::move(columns)), gap_(gap) {
  std::vector<std::string> titles;
  titles.reserve(columns_.size());
  for (const Column& column : columns_) {
    titles.push_back(column.title);
  }
  rows_.push_back(std::move(titles));
}

void TextTable::add_row(std::vector<std::string> cells) {
  expects(cells.size() == columns_.size(), "a row has a cell for each column");
  rows_.push_back(std::move(cells));
}

std::string TextTable::text() const {
  std::vector<std::size_t> widths(columns_.size());
  for (const auto& row : rows_) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      for (const std::string& line : lines_of(row[c])) {
        widths[c] = std::max(widths[c], text_width(line));
      }
    }
  }
  std::string text;
  for (const auto& row : rows_) {
    std::vector<std::vector<std::string>> cells;
    std::size_t height = 0;
    for (const std::string& cell : row) {
      cells.push_back(lines_of(cell));
      height = std::max(height, cells.back().size());
    }
    for (std::size_t i = 0; i < height; ++i) {
      std::string line;
      for (std::size_t c = 0; c < cells.size(); ++c) {
        line.append(c == 0 ? 0 : gap_, ' ');
        append_padded(line, i < cells[c].size() ? cells[c][i] : "", widths[c], columns_[c].align);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + '\n';
    }
  }
  return text;
}

std::size_t text_width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::string shortened(const std::string& text, std::size_t width) {
  constexpr std::string_view kDots = "...";
  if (text_width(text) <= width || width <= kDots.size()) {
    return text;
  }
  std::size_t end = 0;
  std::size_t used = 0;
  for (; used < width - kDots.size() || !begins_character(text[end]); ++end) {
    used += begins_character(text[end]) ? 1 : 0;
  }
  return text.substr(0, end) + std::string(kDots);
}

std::string wrapped(const std::vector<std::string>& words, std::size_t width) {
  std::string text;
  std::size_t used = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string word = words[i] + (i + 1 < words.size() ? "," : "");
    if (used > 0 && used + 1 + word.size() > width) {
      text += '\n';
      used = 0;
    }
    if (used > 0) {
      text += ' ';
      ++used;
    }
    text += word;
    used += word.size();
  }
  return text;
}

std::string in_lines(const std::string& text, std::size_t width, std::size_t indent) {
  std::istringstream words(text);
  std::string lines;
  std::size_t used = 0;
  for (std::string word; words >> word;) {
    if (used > 0 && used + 1 + word.size() > width) {
      lines += "\n" + std::string(indent, ' ');
      used = 0;
    }
    lines += (used > 0 ? " " : "") + word;
    used += word.size() + (used > 0 ? 1 : 0);
  }
  return lines;
}

}  // namespace tessera
