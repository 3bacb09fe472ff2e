#include "engine/chart/bar_chart.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "engine/chart/axis.h"
#include "engine/chart/markup.h"
#include "engine/chart/text_size.h"
#include "engine/chart/ticks.h"

namespace tessera::engine {

namespace {

constexpr double kNarrowBars = 520;
constexpr double kWideBars = 1060;
constexpr double kBarHeight = 12;
constexpr double kBarDistance = 14;
constexpr double kGroupGap = 9;
constexpr double kBarTop = 6;
constexpr double kBarBottom = 24;
constexpr double kNameGap = 8;  // beside names and sums
constexpr double kMostGroupName = 170;
constexpr double kMostBarName = 110;

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
  BarDrawing(const BarChart& chart, double width) : chart_(chart), width_(width) {
    double most = 0;
    double bar_names = 0;
    double group_names = 0;
    double sums = 0;
    height_ = kBarTop + kBarBottom;
    for (const BarGroup& group : chart.groups) {
      for (const Bar& bar : group.bars) {
        most = std::max(most, sum_of(bar));
        bar_names = std::max(bar_names, drawn_width(shown_name(bar)));
        sums = std::max(sums, drawn_width(quantity_text(sum_of(bar), chart.unit)));
      }
      height_ += kBarDistance * static_cast<double>(group.bars.size()) + kGroupGap;
      group_names = std::max(group_names, drawn_width(shown_name(group)));
    }
    for (const Level& level : chart.levels) {
      most = std::max(most, level.y);
    }
    scale_ = scaled_unit(chart.unit, most);
    x_ = {.low = 0,
          .high = most / scale_.size,
          .begin = group_names + (bar_names > 0 ? bar_names + kNameGap : 0) + kNameGap,
          .end = width_ - sums - kNameGap};
  }

  [[nodiscard]] std::string html() const {
    Figure figure;
    figure.id = chart_.id;
    figure.title = chart_.title;
    figure.unit = scale_.name;
    figure.note = chart_.note;
    figure.legend = legend();
    figure.drawing = svg();
    figure.narrow_drawing = chart_.wide ? BarDrawing(chart_, kNarrowBars).svg() : "";
    figure.table = table();
    figure.wide = chart_.wide;
    constexpr double kTall = 300;
    figure.tall = height_ > kTall;
    return figure_html(figure);
  }

 private:
  [[nodiscard]] std::string svg() const {
    return drawing_svg(width_, height_, label(), "", content());
  }

  static std::string shown_name(const BarGroup& group) {
    return fitted(group.name, kMostGroupName);
  }
  static std::string shown_name(const Bar& bar) { return fitted(bar.name, kMostBarName); }

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
    const Ticks ticks = linear_ticks(x_.low, x_.high, width_ == kWideBars ? 12 : 6);
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
        escaped(shown_name(bar)),
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
  return is_empty(chart) ? "" : BarDrawing(chart, chart.wide ? kWideBars : kNarrowBars).html();
}

}  // namespace tessera::engine
