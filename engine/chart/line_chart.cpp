#include "engine/chart/line_chart.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "engine/chart/axis.h"
#include "engine/chart/markup.h"
#include "engine/chart/text_size.h"
#include "engine/chart/ticks.h"

namespace tessera::engine {

namespace {

constexpr double kHeight = 210;
constexpr double kNarrowLines = 520;
constexpr double kWideLines = 1060;
constexpr double kLeastLeft = 46;
constexpr double kLineRight = 10;
constexpr double kLineTop = 12;
constexpr double kLineBottom = 24;
constexpr int kYTicks = 6;

Swatch swatch_of(LineLook look) {
  switch (look) {
    case LineLook::Dashed:
      return Swatch::Dashed;
    case LineLook::Dots:
      return Swatch::Dot;
    case LineLook::Faint:
      return Swatch::Pale;
    case LineLook::Line:
      return Swatch::Line;
  }
  return Swatch::Line;
}

const char* look_class(LineLook look) {
  switch (look) {
    case LineLook::Dashed:
      return "dashed";
    case LineLook::Faint:
      return "faint";
    case LineLook::Dots:
    case LineLook::Line:
      return "line";
  }
  return "line";
}

class LineDrawing {
 public:
  explicit LineDrawing(const LineChart& chart)
      : chart_(chart), width_(chart.wide ? kWideLines : kNarrowLines) {
    fit_y();
    fit_x();
  }

  [[nodiscard]] std::string html() const {
    Figure figure;
    figure.id = chart_.id;
    figure.title = chart_.title;
    figure.unit = y_scale_.name;
    figure.note = chart_.note;
    figure.legend = legend();
    figure.drawing = drawing_svg(width_, kHeight, label(), read_out(), content());
    figure.table = table();
    figure.wide = chart_.wide;
    return figure_html(figure);
  }

 private:
  template <class Visit>
  void for_each_line(const Visit& visit) const {
    for (const Series& series : chart_.series) {
      visit(series.points);
    }
    for (const Band& band : chart_.bands) {
      visit(band.low);
      visit(band.high);
    }
  }

  void fit_x() {
    Extent extent;
    for_each_line([&](const std::vector<Point>& points) {
      for (const Point& point : points) {
        extent.include(point.x);
      }
    });
    if (chart_.x_unit == Unit::Seconds) {
      extent.include(0);
    }
    x_scale_ = scaled_unit(chart_.x_unit, extent.high);
    if (chart_.x_unit == Unit::Number) {
      x_scale_ = ScaledUnit();
    }
    const double half = extent.high > extent.low ? 0 : 0.5 * x_scale_.size;
    x_ = {.low = (extent.low - half) / x_scale_.size,
          .high = (extent.high + half) / x_scale_.size,
          .begin = left_,
          .end = width_ - kLineRight};
  }

  void fit_y() {
    Extent extent;
    for_each_line([&](const std::vector<Point>& points) {
      for (const Point& point : points) {
        extent.include(point.y);
      }
    });
    for (const Level& level : chart_.levels) {
      extent.include(level.y);
    }
    const bool logarithmic = chart_.logarithmic && extent.low > 0;
    if (chart_.from_zero && !logarithmic) {
      extent.include(0);
    }
    y_scale_ = scaled_unit(chart_.y_unit, std::max(std::abs(extent.low), std::abs(extent.high)));
    double low = extent.low / y_scale_.size;
    double high = extent.high / y_scale_.size;
    if (high - low <= 1e-9 * std::abs(high)) {
      const double around = high == 0 ? 1 : 0.1 * std::abs(high);
      low = chart_.from_zero ? low : low - (logarithmic ? 0.5 * low : around);
      high += around;
    } else if (logarithmic) {
      low /= 1.05;
      high *= 1.05;
    } else {
      const double margin = 0.05 * (high - low);
      low -= low == 0 ? 0 : margin;
      high += margin;
    }
    if (chart_.y_most) {
      high = std::min(high, *chart_.y_most / y_scale_.size);
    }
    if (high <= low) {
      low = high - 1;
    }
    y_ = {.low = low,
          .high = high,
          .begin = kHeight - kLineBottom,
          .end = kLineTop,
          .logarithmic = logarithmic};
    const Ticks ticks = y_ticks();
    for (const double value : ticks.values) {
      left_ = std::max(left_, drawn_width(tick_text(value, ticks.step)) + 8);
    }
  }

  [[nodiscard]] Ticks y_ticks() const {
    return y_.logarithmic ? log_ticks(y_.low, y_.high) : linear_ticks(y_.low, y_.high, kYTicks);
  }

  [[nodiscard]] double x_at(double x) const { return x_.at(x / x_scale_.size); }
  [[nodiscard]] double y_at(double y) const { return y_.at(y / y_scale_.size); }

  [[nodiscard]] std::string content() const {
    std::string svg = grid();
    for (const Band& band : chart_.bands) {
      svg += band_path(band);
    }
    for (const Level& level : chart_.levels) {
      svg += level_line(level);
    }
    for (const Series& series : chart_.series) {
      svg += series_path(series);
    }
    return svg + marks();
  }

  [[nodiscard]] std::string grid() const {
    std::string svg = "<g class=\"grid\">";
    const Ticks rows = y_ticks();
    for (const double value : rows.values) {
      const std::string y = coordinate(y_.at(value));
      svg += fmt::format(
          "<path d=\"M{} {}H{}\"/><text x=\"{}\" y=\"{}\" dy=\".32em\" class=\"end\">{}</text>",
          coordinate(left_),
          y,
          coordinate(width_ - kLineRight),
          coordinate(left_ - 6),
          y,
          escaped(tick_text(value, rows.step)));
    }
    return svg + x_ticks() + "</g>\n";
  }

  [[nodiscard]] std::string x_ticks() const {
    const int most = chart_.wide ? 14 : 7;
    const Ticks columns = chart_.x_unit == Unit::Number ? whole_ticks(x_.low, x_.high, most)
                                                        : linear_ticks(x_.low, x_.high, most);
    const std::string base = coordinate(kHeight - kLineBottom);
    std::string svg =
        fmt::format("<path class=\"base\" d=\"M{} {}H{}\"/>", left_, base, width_ - kLineRight);
    const std::string name = chart_.x_name +
                             (chart_.x_name.empty() || *x_scale_.name == '\0' ? "" : ", ") +
                             x_scale_.name;
    const double name_begin = width_ - kLineRight - drawn_width(name) - 8;
    for (const double value : columns.values) {
      const std::string text = tick_text(value, columns.step);
      const double x = x_.at(value);
      const std::string at = coordinate(x);
      svg += fmt::format("<path d=\"M{} {}v4\"/>", at, base);
      if (x + drawn_width(text) / 2 < name_begin) {
        svg += fmt::format("<text x=\"{}\" y=\"{}\" class=\"middle\">{}</text>",
                           at,
                           coordinate(kHeight - 5),
                           escaped(text));
      }
    }
    return svg + fmt::format("<text x=\"{}\" y=\"{}\" class=\"end\">{}</text>",
                             coordinate(width_ - kLineRight),
                             coordinate(kHeight - 5),
                             escaped(name));
  }

  // Pen strokes from point to point, lifted over gaps; a point between two gaps is a dot.
  [[nodiscard]] std::string strokes(const std::vector<Point>& points) const {
    std::string path;
    bool down = false;
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (!std::isfinite(points[i].y)) {
        down = false;
        continue;
      }
      path += fmt::format("{}{} {}",
                          down ? 'L' : 'M',
                          coordinate(x_at(points[i].x)),
                          coordinate(y_at(points[i].y)));
      const bool alone = !down && (i + 1 == points.size() || !std::isfinite(points[i + 1].y));
      path += alone ? "h0" : "";
      down = true;
    }
    return path;
  }

  [[nodiscard]] std::vector<Point> shown(const std::vector<Point>& points) const {
    return thinned(points, static_cast<std::size_t>((width_ - left_ - kLineRight) / 2));
  }

  [[nodiscard]] std::string series_path(const Series& series) const {
    const std::vector<Point> points = shown(series.points);
    std::string svg = fmt::format("<path class=\"series {} {}\" data-name=\"{}\" d=\"{}\"/>\n",
                                  look_class(series.look),
                                  colour_class(series.colour),
                                  escaped(series.name),
                                  strokes(points));
    if (series.look == LineLook::Dots) {
      svg += fmt::format(
          "<path class=\"dots {}\" d=\"{}\"/>\n", colour_class(series.colour), dots(points));
    }
    return svg;
  }

  [[nodiscard]] std::string dots(const std::vector<Point>& points) const {
    std::string path;
    for (const Point& point : points) {
      if (std::isfinite(point.y)) {
        path += fmt::format("M{} {}h0", coordinate(x_at(point.x)), coordinate(y_at(point.y)));
      }
    }
    return path;
  }

  // Gaps divide a band into several.
  [[nodiscard]] std::string band_path(const Band& band) const {
    std::string path;
    const std::size_t count = std::min(band.low.size(), band.high.size());
    const auto usable = [&](std::size_t i) {
      return std::isfinite(band.low[i].y) && std::isfinite(band.high[i].y);
    };
    for (std::size_t begin = 0; begin < count;) {
      std::size_t end = begin;
      while (end < count && usable(end)) {
        ++end;
      }
      for (std::size_t i = begin; i < end; ++i) {
        path += fmt::format("{}{} {}",
                            i == begin ? 'M' : 'L',
                            coordinate(x_at(band.high[i].x)),
                            coordinate(y_at(band.high[i].y)));
      }
      for (std::size_t i = end; i > begin; --i) {
        path += fmt::format(
            "L{} {}", coordinate(x_at(band.low[i - 1].x)), coordinate(y_at(band.low[i - 1].y)));
      }
      path += end > begin ? "Z" : "";
      begin = end + 1;
    }
    return fmt::format("<path class=\"band {}\" d=\"{}\"/>\n", colour_class(band.colour), path);
  }

  [[nodiscard]] std::string level_line(const Level& level) const {
    const double y = y_at(level.y);
    return fmt::format(
        "<path class=\"level\" d=\"M{} {}H{}\"/><text class=\"end level\" x=\"{}\" "
        "y=\"{}\">{}</text>\n",
        coordinate(left_),
        coordinate(y),
        coordinate(width_ - kLineRight),
        coordinate(width_ - kLineRight - 4),
        coordinate(y < kLineTop + 12 ? y + 12 : y - 4),
        escaped(level.text));
  }

  // Texts of strong marks that would cover each other are left to the tooltip.
  [[nodiscard]] std::string marks() const {
    std::string svg;
    double free_from = 0;
    for (const Mark& mark : chart_.marks) {
      const double value = mark.x / x_scale_.size;
      if (!(value >= x_.low && value <= x_.high)) {
        continue;
      }
      const double x = x_.at(value);
      svg += fmt::format("<g class=\"mark{}\"><title>{}</title>",
                         mark.strong ? " strong" : "",
                         escaped(mark.text));
      if (mark.strong) {
        svg +=
            fmt::format("<path d=\"M{} {}V{}\"/>", coordinate(x), kLineTop, kHeight - kLineBottom);
        const double length = drawn_width(mark.label);
        const bool left = x + length > width_ - kLineRight;
        const double begin = left ? x - length - 4 : x;
        if (begin >= std::max(free_from, left_)) {
          svg += fmt::format("<text x=\"{}\" y=\"{}\"{}>{}</text>",
                             coordinate(left ? x - 4 : x + 4),
                             coordinate(kLineTop + 9),
                             left ? " class=\"end\"" : "",
                             escaped(mark.label));
          free_from = begin + length + 12;
        }
      } else {
        svg += fmt::format(
            "<path d=\"M{} {}l-3 6h6z\"/>", coordinate(x), coordinate(kHeight - kLineBottom));
      }
      svg += "</g>";
    }
    return svg;
  }

  // By which the page's script finds the values below the pointer.
  [[nodiscard]] std::string read_out() const {
    return fmt::format(
        "data-x=\"{} {} {} {}\" data-y=\"{} {} {} {} {}\" data-x-name=\"{}\" data-x-unit=\"{}\" "
        "data-y-unit=\"{}\"",
        x_.begin,
        x_.end,
        x_.low,
        x_.high,
        y_.begin,
        y_.end,
        y_.low,
        y_.high,
        y_.logarithmic ? 1 : 0,
        escaped(chart_.x_name),
        escaped(x_scale_.name),
        escaped(y_scale_.name));
  }

  [[nodiscard]] std::vector<LegendEntry> legend() const {
    std::vector<LegendEntry> entries;
    if (chart_.series.size() + chart_.bands.size() > 1) {
      for (const Series& series : chart_.series) {
        entries.push_back({series.name, series.colour, swatch_of(series.look)});
      }
      for (const Band& band : chart_.bands) {
        entries.push_back({band.name, band.colour, Swatch::Pale});
      }
    }
    return entries;
  }

  [[nodiscard]] std::string x_text(double x) const {
    return chart_.x_unit == Unit::Number ? fmt::format("{} {:g}", chart_.x_name, x)
                                         : quantity_text(x, chart_.x_unit);
  }

  [[nodiscard]] Table table() const {
    Table table{{"", "first", "last", "lowest", "highest", "points"}, {}};
    for (const Series& series : chart_.series) {
      std::vector<Point> points = series.points;
      std::erase_if(points, [](const Point& point) { return !std::isfinite(point.y); });
      if (points.empty()) {
        continue;
      }
      const auto lower = [](const Point& a, const Point& b) { return a.y < b.y; };
      const auto [low, high] = std::minmax_element(points.begin(), points.end(), lower);
      std::vector<std::string> row{series.name.empty() ? chart_.title : series.name};
      for (const Point& point : {points.front(), points.back(), *low, *high}) {
        row.push_back(
            fmt::format("{} ({})", quantity_text(point.y, chart_.y_unit), x_text(point.x)));
      }
      row.push_back(fmt::format("{}", points.size()));
      table.rows.push_back(std::move(row));
    }
    return table;
  }

  [[nodiscard]] std::string label() const {
    std::string text = chart_.title + ".";
    for (const std::vector<std::string>& row : table().rows) {
      text += fmt::format(" {}: from {} to {}.", row[0], row[1], row[2]);
    }
    return text;
  }

  const LineChart& chart_;
  double width_;
  double left_ = kLeastLeft;  // where the axis begins, behind its numbers
  ScaledUnit x_scale_;
  ScaledUnit y_scale_;
  Axis x_;
  Axis y_;
};

bool has_points(const std::vector<Point>& points) {
  return std::any_of(points.begin(), points.end(), [](const Point& point) {
    return std::isfinite(point.x) && std::isfinite(point.y);
  });
}

}  // namespace

bool is_empty(const LineChart& chart) {
  return std::none_of(chart.series.begin(),
                      chart.series.end(),
                      [](const Series& series) { return has_points(series.points); }) &&
         std::none_of(chart.bands.begin(), chart.bands.end(), [](const Band& band) {
           return has_points(band.low) && has_points(band.high);
         });
}

std::string line_chart_html(const LineChart& chart) {
  return is_empty(chart) ? "" : LineDrawing(chart).html();
}

}  // namespace tessera::engine
