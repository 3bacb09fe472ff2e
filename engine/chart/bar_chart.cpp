#include "engine/chart/bar_chart.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "engine/chart/axis.h"
#include "engine/chart/markup.h"
#include "engine/chart/ticks.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

namespace {

constexpr double kNarrowBars = 520;
constexpr double kWideBars = 1060;
constexpr double kBarHeight = 12;
constexpr double kBarDistance = 14;
constexpr double kGroupGap = 9;
constexpr double kBarTop = 6;
constexpr double kBarBottom = 24;
constexpr double kBarLetter = 6;
constexpr double kBarRight = 58;  // for the sum at the end of a bar
constexpr double kMostLeft = 190;

double length_of(double value) {
  return std::isfinite(value) && value > 0 ? value : 0;
}

double sum_of(const Bar& bar) {
  double sum = 0;
  for (const double value : bar.values) {
    sum += length_of(value);
  }
  return sum;
}

class BarDrawing {
 public:
  explicit BarDrawing(const BarChart& chart)
      : chart_(chart), width_(chart.wide ? kWideBars : kNarrowBars) {
    double most = 0;
    std::size_t letters = 0;
    height_ = kBarTop + kBarBottom;
    for (const BarGroup& group : chart.groups) {
      for (const Bar& bar : group.bars) {
        most = std::max(most, sum_of(bar));
        letters = std::max(letters, bar.name.size());
      }
      height_ += kBarDistance * static_cast<double>(group.bars.size()) + kGroupGap;
      group_letters_ = std::max(group_letters_, shown_name(group).size());
    }
    for (const Level& level : chart.levels) {
      most = std::max(most, level.y);
    }
    scale_ = scaled_unit(chart.unit, most);
    const double left = kBarLetter * static_cast<double>(letters + group_letters_) + 22;
    x_ = {.low = 0,
          .high = most / scale_.size,
          .begin = std::min(left, kMostLeft + kBarLetter * static_cast<double>(letters)),
          .end = width_ - kBarRight};
  }

  [[nodiscard]] std::string html() const {
    Figure figure;
    figure.id = chart_.id;
    figure.title = chart_.title;
    figure.unit = scale_.name;
    figure.note = chart_.note;
    figure.legend = legend();
    figure.drawing = drawing_svg(width_, height_, label(), "", content());
    figure.table = table();
    figure.wide = chart_.wide;
    constexpr double kTall = 300;
    figure.tall = height_ > kTall;
    return figure_html(figure);
  }

 private:
  static std::string shown_name(const BarGroup& group) {
    constexpr std::size_t kMostBytes = 24;
    return printable_start(group.name, kMostBytes);
  }

  [[nodiscard]] bool is_used(std::size_t part) const {
    return std::any_of(chart_.groups.begin(), chart_.groups.end(), [&](const BarGroup& group) {
      return std::any_of(group.bars.begin(), group.bars.end(), [&](const Bar& bar) {
        return part < bar.values.size() && length_of(bar.values[part]) > 0;
      });
    });
  }

  [[nodiscard]] std::string content() const {
    std::string svg = grid();
    double y = kBarTop;
    for (const BarGroup& group : chart_.groups) {
      svg += fmt::format("<text x=\"0\" y=\"{}\" dy=\".8em\" class=\"strong-text\">{}</text>",
                         coordinate(y),
                         escaped(shown_name(group)));
      for (const Bar& bar : group.bars) {
        svg += bar_of(group, bar, y);
        y += kBarDistance;
      }
      y += kGroupGap;
    }
    for (const Level& level : chart_.levels) {
      svg += level_line(level);
    }
    return svg;
  }

  [[nodiscard]] std::string grid() const {
    std::string svg = "<g class=\"grid\">";
    const double bottom = height_ - kBarBottom;
    const Ticks ticks = linear_ticks(x_.low, x_.high, chart_.wide ? 12 : 6);
    for (const double value : ticks.values) {
      const std::string x = coordinate(x_.at(value));
      svg +=
          fmt::format("<path d=\"M{} {}V{}\"/><text x=\"{}\" y=\"{}\" class=\"middle\">{}</text>",
                      x,
                      coordinate(kBarTop),
                      coordinate(bottom),
                      x,
                      coordinate(bottom + 15),
                      escaped(tick_text(value, ticks.step)));
    }
    return svg + fmt::format("<text x=\"{}\" y=\"{}\" class=\"end\">{}</text></g>\n",
                             coordinate(width_),
                             coordinate(bottom + 15),
                             escaped(scale_.name));
  }

  [[nodiscard]] std::string bar_of(const BarGroup& group, const Bar& bar, double y) const {
    std::string svg = fmt::format(
        "<text x=\"{}\" y=\"{}\" dy=\".8em\" class=\"end quiet\">{}</text><g class=\"bar{}\">",
        coordinate(x_.begin - 6),
        coordinate(y),
        escaped(bar.name),
        bar.pale ? " pale" : "");
    double from = 0;
    for (std::size_t part = 0; part < std::min(bar.values.size(), chart_.parts.size()); ++part) {
      const double value = length_of(bar.values[part]);
      if (value == 0) {
        continue;
      }
      const double begin = x_.at(from / scale_.size);
      from += value;
      svg += fmt::format(
          "<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" "
          "height=\"{}\"><title>{}</title></rect>",
          colour_class(chart_.parts[part].colour),
          coordinate(begin),
          coordinate(y),
          coordinate(std::max(x_.at(from / scale_.size) - begin, 0.1)),
          kBarHeight,
          escaped(fmt::format("{}, {}: {} {}",
                              group.name,
                              bar.name,
                              chart_.parts[part].name,
                              quantity_text(value, chart_.unit))));
    }
    return svg + fmt::format("</g><text x=\"{}\" y=\"{}\" dy=\".8em\" class=\"quiet\">{}</text>\n",
                             coordinate(x_.at(from / scale_.size) + 5),
                             coordinate(y),
                             escaped(quantity_text(from, chart_.unit)));
  }

  [[nodiscard]] std::string level_line(const Level& level) const {
    const double x = x_.at(level.y / scale_.size);
    return fmt::format("<g><title>{0}</title><path class=\"level\" d=\"M{1} {2}V{3}\"/></g>\n",
                       escaped(level.text),
                       coordinate(x),
                       coordinate(kBarTop),
                       coordinate(height_ - kBarBottom));
  }

  [[nodiscard]] std::vector<LegendEntry> legend() const {
    std::vector<LegendEntry> entries;
    for (std::size_t part = 0; part < chart_.parts.size(); ++part) {
      if (is_used(part)) {
        entries.push_back({chart_.parts[part].name, chart_.parts[part].colour, Swatch::Box});
      }
    }
    for (const Level& level : chart_.levels) {
      entries.push_back({level.text, kColours - 1, Swatch::Dashed});
    }
    return entries;
  }

  [[nodiscard]] Table table() const {
    Table table{{""}, {}};
    for (std::size_t part = 0; part < chart_.parts.size(); ++part) {
      if (is_used(part)) {
        table.head.push_back(chart_.parts[part].name);
      }
    }
    table.head.emplace_back("sum");
    for (const BarGroup& group : chart_.groups) {
      for (const Bar& bar : group.bars) {
        std::vector<std::string> row{bar.name.empty() ? group.name : group.name + ", " + bar.name};
        for (std::size_t part = 0; part < chart_.parts.size(); ++part) {
          if (is_used(part)) {
            row.push_back(part < bar.values.size() ? quantity_text(bar.values[part], chart_.unit)
                                                   : "–");
          }
        }
        row.push_back(quantity_text(sum_of(bar), chart_.unit));
        table.rows.push_back(std::move(row));
      }
    }
    return table;
  }

  [[nodiscard]] std::string label() const {
    std::string text = chart_.title + ".";
    for (const BarGroup& group : chart_.groups) {
      for (const Bar& bar : group.bars) {
        text += fmt::format(" {}{}{}: {}.",
                            group.name,
                            bar.name.empty() ? "" : ", ",
                            bar.name,
                            quantity_text(sum_of(bar), chart_.unit));
      }
    }
    return text;
  }

  const BarChart& chart_;
  double width_;
  double height_ = 0;
  std::size_t group_letters_ = 0;
  ScaledUnit scale_;
  Axis x_;
};

}  // namespace

bool is_empty(const BarChart& chart) {
  return std::all_of(chart.groups.begin(), chart.groups.end(), [](const BarGroup& group) {
    return std::all_of(
        group.bars.begin(), group.bars.end(), [](const Bar& bar) { return !(sum_of(bar) > 0); });
  });
}

std::string bar_chart_html(const BarChart& chart) {
  return is_empty(chart) ? "" : BarDrawing(chart).html();
}

}  // namespace tessera::engine
