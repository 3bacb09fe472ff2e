// A chart as it stands in a page: its title, a legend, the drawing, and the same as a table for
// those who cannot see it or want the numbers.
//
// Colours are classes: "c0" to "c7" are told apart by eye, "strong" is for what has gone wrong.
// chart_style() gives them their values, for light and dark.

#pragma once

#include <string>
#include <vector>

namespace tessera::engine {

inline constexpr int kColours = 8;

// "c3"; numbers beyond the last colour begin again with the first.
[[nodiscard]] std::string colour_class(int number);

enum class Swatch { Line, Dashed, Box, Pale, Hatched, Dot };

struct LegendEntry {
  std::string name = {};
  int colour = 0;
  Swatch swatch = Swatch::Box;
};

struct Table {
  std::vector<std::string> head = {};  // the first column's cells are headings of their rows
  std::vector<std::vector<std::string>> rows = {};
};

// Numbers stand to the right.
[[nodiscard]] std::string table_html(const Table& table);

// The names in one line, with a swatch each.
[[nodiscard]] std::string legend_html(const std::vector<LegendEntry>& entries);

struct Figure {
  std::string id = {};     // of the element; letters and hyphens
  std::string title = {};  // plain text, as are unit, note and the legend
  std::string unit = {};   // beside the title; empty: none
  std::string note = {};   // below the drawing; empty: none
  std::vector<LegendEntry> legend = {};
  std::string drawing = {};         // SVG
  std::string narrow_drawing = {};  // instead of it on a narrow screen; empty: the same
  Table table = {};                 // in a fold; without rows: none
  bool wide = false;                // takes the whole width of the page
  bool tall = false;                // may have two others beside it
};
[[nodiscard]] std::string figure_html(const Figure& figure);

// An <svg> of that size, which fills the width it is given. `label` says in a sentence what it
// shows.
[[nodiscard]] std::string drawing_svg(double width,
                                      double height,
                                      const std::string& label,
                                      const std::string& attributes,
                                      const std::string& content);

}  // namespace tessera::engine
