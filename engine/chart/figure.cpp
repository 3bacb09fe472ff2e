#include "engine/chart/figure.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/chart/markup.h"

namespace tessera::engine {

namespace {

const char* name_of(Swatch swatch) {
  switch (swatch) {
    case Swatch::Line:
      return "line";
    case Swatch::Dashed:
      return "dashed";
    case Swatch::Box:
      return "box";
    case Swatch::Pale:
      return "pale";
    case Swatch::Hatched:
      return "hatched";
    case Swatch::Dot:
      return "dot";
  }
  return "box";
}

const char* figure_class(const Figure& figure) {
  if (figure.wide) {
    return " class=\"wide\"";
  }
  return figure.tall ? " class=\"tall\"" : "";
}

constexpr std::size_t kMostNarrowColumns = 4;  // that a telephone shows beside each other

// Each cell but the first tells the name of its column, where there are names.
std::string row_html(const std::vector<std::string>& cells,
                     const char* cell,
                     const char* scope,
                     const std::vector<std::string>& names = {}) {
  std::string row = "<tr>";
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string name =
        i < names.size() ? fmt::format(" data-name=\"{}\"", escaped(names[i])) : "";
    row += i == 0 ? fmt::format("<th scope=\"{}\">{}</th>", scope, escaped(cells[i]))
                  : fmt::format("<{0}{1}>{2}</{0}>", cell, name, escaped(cells[i]));
  }
  return row + "</tr>\n";
}

}  // namespace

std::string colour_class(int number) {
  return fmt::format("c{}", std::max(number, 0) % kColours);
}

std::string table_html(const Table& table) {
  const bool broad = table.head.size() > kMostNarrowColumns;
  std::string html = broad ? "<table class=\"broad-table\">" : "<table>";
  html += "\n<thead>" + row_html(table.head, "th", "col") + "</thead>\n<tbody>\n";
  for (const std::vector<std::string>& row : table.rows) {
    html += row_html(row, "td", "row", broad ? table.head : std::vector<std::string>());
  }
  return html + "</tbody>\n</table>\n";
}

std::string legend_html(const std::vector<LegendEntry>& entries) {
  if (entries.empty()) {
    return "";
  }
  std::string html = "<ul class=\"legend\">";
  for (const LegendEntry& entry : entries) {
    html += fmt::format("<li><i class=\"{} {}\"></i>{}</li>",
                        name_of(entry.swatch),
                        colour_class(entry.colour),
                        escaped(entry.name));
  }
  return html + "</ul>\n";
}

std::string figure_html(const Figure& figure) {
  std::string html = fmt::format("<figure id=\"{}\"{}>\n<figcaption><b>{}</b>",
                                 escaped(figure.id),
                                 figure_class(figure),
                                 escaped(figure.title));
  if (!figure.unit.empty()) {
    html += fmt::format(" <span>{}</span>", escaped(figure.unit));
  }
  html += "</figcaption>\n" + legend_html(figure.legend);
  const bool both = !figure.narrow_drawing.empty();
  html += fmt::format("<div class=\"drawing{}\">{}</div>\n", both ? " broad" : "", figure.drawing);
  if (both) {
    html += "<div class=\"drawing narrow\">" + figure.narrow_drawing + "</div>\n";
  }
  if (!figure.note.empty()) {
    html += "<p class=\"note\">" + escaped(figure.note) + "</p>\n";
  }
  if (!figure.table.rows.empty()) {
    html += "<details><summary>Numbers</summary>\n<div class=\"scroll\">" +
            table_html(figure.table) + "</div></details>\n";
  }
  return html + "</figure>\n";
}

std::string drawing_svg(double width,
                        double height,
                        const std::string& label,
                        const std::string& attributes,
                        const std::string& content) {
  return fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\"{}{}>\n{}</svg>\n",
                     coordinate(width),
                     coordinate(height),
                     escaped(label),
                     attributes.empty() ? "" : " ",
                     attributes,
                     content);
}

}  // namespace tessera::engine
