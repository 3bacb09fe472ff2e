#include "engine/run_view/curve.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <string>

namespace tessera::engine {

namespace {

constexpr int kScaleColumns = 8;  // number and rule on the left
constexpr int kLeastColumns = 4;
constexpr double kMuch = 50;  // the largest over the smallest: then the scale is logarithmic
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// A character of Braille by its dots, the lowest bit first: down the left column, then the right
// one; the last row came later and has the highest two bits.
std::string braille(unsigned dots) {
  const unsigned code = 0x2800U + dots;
  return {static_cast<char>(0xe0U | code >> 12U),
          static_cast<char>(0x80U | (code >> 6U & 0x3fU)),
          static_cast<char>(0x80U | (code & 0x3fU))};
}
unsigned braille_dot(int x, int y) {
  constexpr unsigned kDots[2][4] = {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}};
  return kDots[x][y];
}

class Curve {
 public:
  Curve(Canvas& canvas,
        const CanvasBox& box,
        const std::vector<CurvePoint>& line,
        const std::vector<CurvePoint>& marks)
      : canvas_(canvas),
        area_{box.column + kScaleColumns, box.line, box.columns - kScaleColumns, box.lines - 1},
        dots_x_(canvas.style().unicode ? 2 : 1),
        dots_y_(canvas.style().unicode ? 4 : 1) {
    for (const auto* points : {&line, &marks}) {
      for (const CurvePoint& point : *points) {
        if (std::isfinite(point.y)) {
          least_x_ = std::min(least_x_, point.x);
          most_x_ = std::max(most_x_, point.x);
        }
      }
    }
    if (!has_room()) {
      return;
    }
    means_ = column_means(line);
    set_scale(marks);
  }

  [[nodiscard]] bool has_room() const {
    return area_.columns >= kLeastColumns && area_.lines >= 2 && least_x_ <= most_x_;
  }

  void draw(const std::vector<CurvePoint>& marks) {
    draw_scale();
    draw_line();
    for (const CurvePoint& mark : marks) {
      if (std::isfinite(mark.y)) {
        canvas_.write(area_.column + dot_column(mark.x) / dots_x_,
                      area_.line + dot_row(mark.y) / dots_y_,
                      canvas_.style().either("◆", "o"),
                      Ink::Good);
      }
    }
  }

 private:
  [[nodiscard]] int dot_columns() const { return area_.columns * dots_x_; }
  [[nodiscard]] int dot_rows() const { return area_.lines * dots_y_; }

  [[nodiscard]] int dot_column(double x) const {
    const double share = most_x_ > least_x_ ? (x - least_x_) / (most_x_ - least_x_) : 0;
    return std::clamp(static_cast<int>(share * dot_columns()), 0, dot_columns() - 1);
  }
  [[nodiscard]] double scaled(double y) const { return logarithmic_ ? std::log(y) : y; }
  [[nodiscard]] int dot_row(double y) const {
    const double share = (scaled(most_y_) - scaled(y)) / (scaled(most_y_) - scaled(least_y_));
    return std::clamp(static_cast<int>(share * dot_rows()), 0, dot_rows() - 1);
  }

  [[nodiscard]] std::vector<double> column_means(const std::vector<CurvePoint>& line) const {
    std::vector<double> sums(static_cast<std::size_t>(dot_columns()));
    std::vector<int> counts(sums.size());
    for (const CurvePoint& point : line) {
      if (std::isfinite(point.y)) {
        const auto column = static_cast<std::size_t>(dot_column(point.x));
        sums[column] += point.y;
        ++counts[column];
      }
    }
    for (std::size_t column = 0; column < sums.size(); ++column) {
      sums[column] = counts[column] == 0 ? kNaN : sums[column] / counts[column];
    }
    return sums;
  }

  void set_scale(const std::vector<CurvePoint>& marks) {
    const auto take = [this](double y) {
      if (std::isfinite(y)) {
        least_y_ = std::min(least_y_, y);
        most_y_ = std::max(most_y_, y);
      }
    };
    std::for_each(means_.begin(), means_.end(), take);
    for (const CurvePoint& mark : marks) {
      take(mark.y);
    }
    logarithmic_ = least_y_ > 0 && most_y_ / least_y_ > kMuch;
    if (most_y_ <= least_y_) {
      const double margin = std::max(std::abs(least_y_) / 10, 1e-6);
      least_y_ -= margin;
      most_y_ += margin;
    }
  }

  void draw_scale() {
    const ScreenStyle& style = canvas_.style();
    const int rule = area_.column - 1;
    for (int line = 0; line < area_.lines; ++line) {
      canvas_.write(rule, area_.line + line, style.either("│", "|"), Ink::Faint);
    }
    const auto number = [](double value) { return fmt::format("{:.3g}", value); };
    for (const auto& [line, value] : {std::pair{0, most_y_}, {area_.lines - 1, least_y_}}) {
      canvas_.write_left_of(rule, area_.line + line, number(value), Ink::Faint);
      canvas_.write(rule, area_.line + line, style.either("┤", "+"), Ink::Faint);
    }
    const int bottom = area_.line + area_.lines;
    canvas_.write(rule, bottom, style.either("└", "+"), Ink::Faint);
    canvas_.fill(
        area_.column, area_.column + area_.columns, bottom, style.either("─", "-"), Ink::Faint);
    const std::string first = fmt::format(" {:.0f} ", least_x_);
    const std::string last = fmt::format(" {:.0f} ", most_x_);
    canvas_.write(area_.column + 1, bottom, first, Ink::Faint);
    if (most_x_ > least_x_ && screen_width(first + last) + 3 < area_.columns) {
      canvas_.write_left_of(area_.column + area_.columns - 1, bottom, last, Ink::Faint);
    }
  }

  // Each column of dots reaches to where the one before is, so that the line is whole.
  void draw_line() {
    std::vector<unsigned> cells(static_cast<std::size_t>(area_.columns * area_.lines));
    int before = -1;
    int column_before = -1;
    const auto dot = [&](int column, int row) {
      const int cell = row / dots_y_ * area_.columns + column / dots_x_;
      cells[static_cast<std::size_t>(cell)] |= braille_dot(column % dots_x_, row % dots_y_);
    };
    for (int column = 0; column < dot_columns(); ++column) {
      const double mean = means_[static_cast<std::size_t>(column)];
      if (!std::isfinite(mean)) {
        continue;
      }
      const int row = dot_row(mean);
      for (int x = std::max(column_before, 0); before >= 0 && x <= column; ++x) {
        const auto height = [&](int at) {
          return before + (row - before) * (at - column_before) / (column - column_before);
        };
        const int last = height(std::min(x + 1, column));
        for (int y = std::min(height(x), last); y <= std::max(height(x), last); ++y) {
          dot(x, y);
        }
      }
      dot(column, row);
      before = row;
      column_before = column;
    }
    for (int line = 0; line < area_.lines; ++line) {
      for (int column = 0; column < area_.columns; ++column) {
        if (const unsigned dots = cells[static_cast<std::size_t>(line * area_.columns + column)]) {
          canvas_.write(area_.column + column,
                        area_.line + line,
                        canvas_.style().unicode ? braille(dots) : "*",
                        Ink::Accent);
        }
      }
    }
  }

  Canvas& canvas_;
  CanvasBox area_;  // of the dots
  int dots_x_;      // in a character
  int dots_y_;
  double least_x_ = std::numeric_limits<double>::infinity();
  double most_x_ = -std::numeric_limits<double>::infinity();
  double least_y_ = std::numeric_limits<double>::infinity();
  double most_y_ = -std::numeric_limits<double>::infinity();
  bool logarithmic_ = false;
  std::vector<double> means_;  // of each column of dots; NaN: there is none
};

}  // namespace

bool draw_curve(Canvas& canvas,
                const CanvasBox& box,
                const std::vector<CurvePoint>& line,
                const std::vector<CurvePoint>& marks) {
  Curve curve(canvas, box, line, marks);
  if (!curve.has_room()) {
    return false;
  }
  curve.draw(marks);
  return true;
}

}  // namespace tessera::engine
