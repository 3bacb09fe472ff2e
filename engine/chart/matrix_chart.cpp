#include "engine/chart/matrix_chart.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

#include "engine/chart/figure.h"
#include "engine/chart/markup.h"
#include "engine/chart/text_size.h"
#include "engine/chart/unit.h"

namespace tessera::engine {

namespace {

constexpr double kNarrowMatrix = 520;
constexpr double kWideMatrix = 1060;
constexpr std::size_t kMostNarrow = 20;    // rows of a matrix whose names fit beside each other
constexpr std::size_t kMostNumbered = 12;  // rows whose cells have room for their counts
constexpr std::size_t kMostNamed = 40;
constexpr double kMostName = 112;
// Of the names of columns, which rise at 50 degrees: their cosine and sine.
constexpr double kRun = 0.643;
constexpr double kRise = 0.767;

class MatrixDrawing {
 public:
  // With names where there are no more rows than that.
  explicit MatrixDrawing(const MatrixChart& chart, std::size_t most_named = kMostNamed)
      : chart_(chart), count_(chart.cells.size()), is_named_(count_ <= most_named) {
    double longest = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      longest = std::max(longest, drawn_width(name(i)));
    }
    left_ = is_named_ ? longest + 8 : 20;
    top_ = is_named_ ? kRise * longest + kRun * kLargestText + 8 : 20;
    constexpr double kMostCell = 40;
    const auto count = static_cast<double>(count_);
    cell_ = std::min((width() - left_) / count, kMostCell);
    for (std::size_t i = 0; is_named_ && i < count_; ++i) {
      // Each column's name ends inside the drawing, too.
      const double name_cols = kRun * drawn_width(name(i)) + kLargestText;
      cell_ = std::min(cell_, (width() - left_ - name_cols) / (static_cast<double>(i) + 0.5));
    }
  }

  [[nodiscard]] std::string html() const {
    Figure figure;
    figure.id = chart_.id;
    figure.title = chart_.title;
    figure.unit = fmt::format("rows: {}, columns: {}", chart_.row_name, chart_.column_name);
    figure.note = chart_.note;
    figure.drawing = svg();
    figure.narrow_drawing = is_wide() ? MatrixDrawing(chart_, kMostNarrow).svg() : "";
    figure.table = table();
    figure.wide = is_wide();
    return figure_html(figure);
  }

 private:
  [[nodiscard]] std::string svg() const {
    const double side = cell_ * static_cast<double>(count_);
    return drawing_svg(width(), top_ + side + 4, label(), "", content());
  }

  [[nodiscard]] bool is_wide() const { return is_named_ && count_ > kMostNarrow; }
  [[nodiscard]] double width() const { return is_wide() ? kWideMatrix : kNarrowMatrix; }

  [[nodiscard]] std::string full_name(std::size_t i) const {
    return i < chart_.names.size() ? chart_.names[i] : fmt::format("{}", i);
  }
  [[nodiscard]] std::string name(std::size_t i) const { return fitted(full_name(i), kMostName); }

  static std::int64_t sum_of(const std::vector<std::int64_t>& row) {
    return std::accumulate(row.begin(), row.end(), std::int64_t{0});
  }

  [[nodiscard]] std::string content() const {
    const double side = cell_ * static_cast<double>(count_);
    std::string svg =
        fmt::format("<rect class=\"paper\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n",
                    coordinate(left_),
                    coordinate(top_),
                    coordinate(side),
                    coordinate(side));
    for (std::size_t row = 0; row < count_; ++row) {
      svg += is_named_ ? names_of(row) : "";
      const auto sum = static_cast<double>(sum_of(chart_.cells[row]));
      for (std::size_t column = 0; column < std::min(count_, chart_.cells[row].size()); ++column) {
        if (chart_.cells[row][column] > 0) {
          svg += cell(row, column, static_cast<double>(chart_.cells[row][column]) / sum);
        }
      }
      svg += "\n";
    }
    return svg;
  }

  [[nodiscard]] std::string names_of(std::size_t i) const {
    const double at = cell_ * (static_cast<double>(i) + 0.5);
    return fmt::format(
        "<text x=\"{}\" y=\"{}\" dy=\".32em\" class=\"end\">{}</text><text class=\"rising\" "
        "transform=\"translate({} {}) rotate(-50)\">{}</text>",
        coordinate(left_ - 6),
        coordinate(top_ + at),
        escaped(name(i)),
        coordinate(left_ + at + 3),
        coordinate(top_ - 5),
        escaped(name(i)));
  }

  [[nodiscard]] std::string cell(std::size_t row, std::size_t column, double share) const {
    const double x = left_ + cell_ * static_cast<double>(column);
    const double y = top_ + cell_ * static_cast<double>(row);
    constexpr double kFaintest = 0.06;
    // A few errors matter more than a few hits more or less.
    const double strength = row == column ? share : std::min(1.0, 2.5 * share);
    std::string svg = fmt::format(
        "<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" "
        "fill-opacity=\"{:.2f}\"><title>{}</title></rect>",
        row == column ? "hit" : "miss",
        coordinate(x + 0.5),
        coordinate(y + 0.5),
        coordinate(cell_ - 1),
        coordinate(cell_ - 1),
        kFaintest + (1 - kFaintest) * strength,
        escaped(fmt::format("{} {} {}: {} of {} ({})",
                            full_name(row),
                            chart_.column_name,
                            full_name(column),
                            chart_.cells[row][column],
                            sum_of(chart_.cells[row]),
                            quantity_text(share, Unit::Share))));
    if (const double size = number_size(); size > 0) {
      svg += fmt::format(
          "<text x=\"{}\" y=\"{}\" dy=\".32em\" class=\"middle{}\" "
          "style=\"font-size:{}px\">{}</text>",
          coordinate(x + cell_ / 2),
          coordinate(y + cell_ / 2),
          strength > 0.55 ? " inverse" : "",
          coordinate(size),
          chart_.cells[row][column]);
    }
    return svg;
  }

  // Of the numbers in cells, so that the longest one fits; 0 where none is drawn.
  [[nodiscard]] double number_size() const {
    if (count_ > kMostNumbered) {
      return 0;
    }
    std::int64_t most = 0;
    for (const auto& row : chart_.cells) {
      most = row.empty() ? most : std::max(most, *std::max_element(row.begin(), row.end()));
    }
    constexpr double kLargest = 11;
    constexpr double kReadable = 7;
    const double fitting = (cell_ - 3) / drawn_width(fmt::format("{}", most), 1);
    return fitting < kReadable ? 0 : std::min(fitting, kLargest);
  }

  [[nodiscard]] Table table() const {
    if (count_ > kMostNamed) {
      return {};
    }
    Table table{{chart_.row_name + " / " + chart_.column_name}, {}};
    for (std::size_t i = 0; i < count_; ++i) {
      table.head.push_back(full_name(i));
      std::vector<std::string> row{full_name(i)};
      for (const std::int64_t cell : chart_.cells[i]) {
        row.push_back(fmt::format("{}", cell));
      }
      table.rows.push_back(std::move(row));
    }
    return table;
  }

  [[nodiscard]] std::string label() const {
    std::int64_t hits = 0;
    std::int64_t all = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      hits += i < chart_.cells[i].size() ? chart_.cells[i][i] : 0;
      all += sum_of(chart_.cells[i]);
    }
    return fmt::format(
        "{} of {} by {}; {} of {} lie on the diagonal.", chart_.title, count_, count_, hits, all);
  }

  const MatrixChart& chart_;
  std::size_t count_;
  bool is_named_;
  double left_ = 0;
  double top_ = 0;
  double cell_ = 0;
};

}  // namespace

bool is_empty(const MatrixChart& chart) {
  if (chart.cells.size() > kMostMatrixRows) {
    return true;
  }
  return std::all_of(chart.cells.begin(), chart.cells.end(), [](const auto& row) {
    return std::all_of(row.begin(), row.end(), [](std::int64_t count) { return count <= 0; });
  });
}

std::string matrix_chart_html(const MatrixChart& chart) {
  return is_empty(chart) ? "" : MatrixDrawing(chart).html();
}

}  // namespace tessera::engine
