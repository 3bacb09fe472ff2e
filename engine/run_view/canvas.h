// A rectangle of characters for a terminal, drawn in any order and then turned into lines. Columns
// and lines count from 0; what lies outside is left out.

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tessera::engine {

// What a character means; a terminal that shows colours has one for each.
enum class Ink {
  Plain,
  Faint,   // rules, units, what is of little use
  Strong,  // what to look at first
  Accent,  // the curve, progress
  Good,
  Warn,
  Bad,
  Computing,
  Exchanging,
  Waiting,
  Loading
};

struct ScreenStyle {
  bool colours = true;
  bool unicode = true;  // else ASCII alone

  // One of two ways to write something.
  [[nodiscard]] const char* either(const char* unicode_text, const char* ascii) const {
    return unicode ? unicode_text : ascii;
  }
};

// A part of a canvas.
struct CanvasBox {
  int column = 0;
  int line = 0;
  int columns = 0;
  int lines = 0;
};

class Canvas {
 public:
  Canvas(int columns, int lines, ScreenStyle style);

  [[nodiscard]] int columns() const { return columns_; }
  [[nodiscard]] int lines() const { return lines_; }
  [[nodiscard]] const ScreenStyle& style() const { return style_; }

  // Writes UTF-8 from a place to the right, in at most `width` columns; negative: up to the edge.
  // Characters that do not take one column each, and, without Unicode, those beyond ASCII, become
  // question marks; control characters are shown as numbers. Returns the column after the text.
  int write(int column, int line, std::string_view text, Ink ink = Ink::Plain, int width = -1);
  // The same, ending before a column.
  void write_left_of(int column, int line, std::string_view text, Ink ink = Ink::Plain);
  // Repeats one character of UTF-8 from a column up to another one.
  void fill(int begin, int end, int line, std::string_view character, Ink ink);

  // Lines without blanks at their ends or line breaks, with escape sequences where there are
  // colours.
  [[nodiscard]] std::vector<std::string> text() const;

 private:
  struct Cell {
    std::string character = " ";
    Ink ink = Ink::Plain;
  };
  void set(int column, int line, std::string_view character, Ink ink);
  [[nodiscard]] std::string line_text(int line) const;

  int columns_;
  int lines_;
  ScreenStyle style_;
  std::vector<Cell> cells_;
};

// Columns that write() takes for a text.
[[nodiscard]] int screen_width(std::string_view text);

}  // namespace tessera::engine
