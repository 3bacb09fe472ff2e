#include "engine/run_view/canvas.h"

#include <algorithm>

#include "partitioner/base/printable.h"
#include "partitioner/base/text_table.h"
#include "partitioner/base/utf8.h"

namespace tessera::engine {

namespace {

// One of the 16 colours that every terminal has, as its user has set them.
const char* colour_of(Ink ink) {
  switch (ink) {
    case Ink::Plain:
      return "";
    case Ink::Faint:
      return "\x1b[2m";
    case Ink::Strong:
      return "\x1b[1m";
    case Ink::Accent:
      return "\x1b[36m";
    case Ink::Good:
      return "\x1b[32m";
    case Ink::Warn:
      return "\x1b[33m";
    case Ink::Bad:
      return "\x1b[1;31m";
    case Ink::Computing:
      return "\x1b[34m";
    case Ink::Exchanging:
      return "\x1b[33m";
    case Ink::Waiting:
      return "\x1b[90m";
    case Ink::Loading:
      return "\x1b[35m";
  }
  return "";
}

// Whether terminals give the character one column: letters of Europe, and the rules, blocks, dots
// and arrows that are drawn with. Others are not worth a table of widths here.
bool takes_one_column(char32_t code_point) {
  constexpr char32_t kFirstCombining = 0x300;
  constexpr char32_t kLastCombining = 0x36f;
  constexpr char32_t kFirstWide = 0x1100;
  constexpr char32_t kFirstDrawn = 0x2010;
  constexpr char32_t kLastDrawn = 0x28ff;
  const bool combining = code_point >= kFirstCombining && code_point <= kLastCombining;
  return (code_point < kFirstWide && !combining) ||
         (code_point >= kFirstDrawn && code_point <= kLastDrawn);
}

// The characters of a text that is fit for a terminal, one by one.
template <class Take>
void for_each_character(std::string_view text, Take take) {
  const std::string shown = printable(text);
  std::string_view rest = shown;
  while (!rest.empty()) {
    const std::size_t bytes = std::max<std::size_t>(utf8_character_bytes(rest), 1);
    take(rest.substr(0, bytes));
    rest.remove_prefix(bytes);
  }
}

}  // namespace

Canvas::Canvas(int columns, int lines, ScreenStyle style)
    : columns_(std::max(columns, 0)),
      lines_(std::max(lines, 0)),
      style_(style),
      cells_(static_cast<std::size_t>(columns_) * static_cast<std::size_t>(lines_)) {}

void Canvas::set(int column, int line, std::string_view character, Ink ink) {
  if (column < 0 || column >= columns_ || line < 0 || line >= lines_) {
    return;
  }
  const bool ascii = character.size() == 1;
  const bool shown = ascii || (style_.unicode && utf8_character_bytes(character) != 0 &&
                               takes_one_column(utf8_code_point(character)));
  Cell& cell = cells_[static_cast<std::size_t>(line) * static_cast<std::size_t>(columns_) +
                      static_cast<std::size_t>(column)];
  cell.character = shown ? character : "?";
  cell.ink = ink;
}

int Canvas::write(int column, int line, std::string_view text, Ink ink, int width) {
  const int end = width < 0 ? columns_ : std::min(column + width, columns_);
  for_each_character(text, [&](std::string_view character) {
    if (column < end) {
      set(column++, line, character, ink);
    }
  });
  return column;
}

void Canvas::write_left_of(int column, int line, std::string_view text, Ink ink) {
  write(column - screen_width(text), line, text, ink);
}

void Canvas::fill(int begin, int end, int line, std::string_view character, Ink ink) {
  for (int column = begin; column < end; ++column) {
    set(column, line, character, ink);
  }
}

std::string Canvas::line_text(int line) const {
  const auto begin = cells_.begin() + static_cast<std::ptrdiff_t>(line) * columns_;
  auto end = begin + columns_;
  while (end != begin && (end - 1)->character == " ") {
    --end;
  }
  std::string text;
  Ink ink = Ink::Plain;
  for (auto cell = begin; cell != end; ++cell) {
    if (style_.colours && cell->ink != ink && cell->character != " ") {
      text += ink == Ink::Plain ? "" : "\x1b[0m";
      text += colour_of(cell->ink);
      ink = cell->ink;
    }
    text += cell->character;
  }
  return ink == Ink::Plain ? text : text + "\x1b[0m";
}

std::vector<std::string> Canvas::text() const {
  std::vector<std::string> lines;
  for (int line = 0; line < lines_; ++line) {
    lines.push_back(line_text(line));
  }
  return lines;
}

int screen_width(std::string_view text) {
  return static_cast<int>(text_width(printable(text)));
}

}  // namespace tessera::engine
