#include "engine/chart/span_chart.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "engine/chart/axis.h"
#include "engine/chart/markup.h"
#include "engine/chart/text_size.h"
#include "engine/chart/ticks.h"
#include "engine/chart/unit.h"

namespace tessera::engine {

namespace {

constexpr double kWideSpans = 1060;
constexpr double kNarrowSpans = 520;
constexpr double kSpanTop = 4;
constexpr double kSpanBottom = 24;
constexpr double kLane = 18;
constexpr double kThinLane = 7;
constexpr double kGap = 7;
constexpr double kMostLaneName = 170;
constexpr double kTold = 2;  // width from which on a span has its own box

double height_of(const Lane& lane) {
  return lane.thin ? kThinLane : kLane;
}

class SpanDrawing {
 public:
  SpanDrawing(const SpanChart& chart, double width) : chart_(chart), width_(width) {
    Extent extent;
    double names = 0;
    height_ = kSpanTop + kSpanBottom;
    for (const Lane& lane : chart.lanes) {
      for (const Span& span : lane.spans) {
        extent.include(span.begin_s);
        extent.include(span.end_s);
      }
      names = std::max(names, drawn_width(shown_name(lane)));
      height_ += height_of(lane) + (lane.thin ? 1 : kGap);
    }
    scale_ = scaled_unit(Unit::Seconds, extent.high - extent.low);
    x_ = {.low = extent.low / scale_.size,
          .high = extent.high / scale_.size,
          .begin = names + 8,
          .end = width_ - 20};
  }

  [[nodiscard]] std::string html() const {
    Figure figure;
    figure.id = chart_.id;
    figure.title = chart_.title;
    figure.unit = scale_.name;
    figure.note = chart_.note;
    figure.legend = chart_.kinds;
    figure.drawing = svg();
    figure.narrow_drawing = SpanDrawing(chart_, kNarrowSpans).svg();
    figure.table = chart_.table;
    figure.wide = true;
    return figure_html(figure);
  }

 private:
  [[nodiscard]] std::string svg() const {
    return drawing_svg(width_, height_, label(), "", content());
  }

  static std::string shown_name(const Lane& lane) { return fitted(lane.name, kMostLaneName); }

  [[nodiscard]] std::string content() const {
    std::string svg = grid();
    double y = kSpanTop;
    for (const Lane& lane : chart_.lanes) {
      y += lane.thin ? 1 : kGap;
      svg += fmt::format("<text x=\"{}\" y=\"{}\" dy=\".32em\" class=\"end\">{}</text>",
                         coordinate(x_.begin - 7),
                         coordinate(y + height_of(lane) / 2),
                         escaped(shown_name(lane)));
      svg += spans_of(lane, y);
      y += height_of(lane);
    }
    return svg;
  }

  [[nodiscard]] std::string grid() const {
    std::string svg = "<g class=\"grid\">";
    const double bottom = height_ - kSpanBottom + 4;
    const Ticks ticks = linear_ticks(x_.low, x_.high, width_ > kNarrowSpans ? 14 : 6);
    for (const double value : ticks.values) {
      const std::string x = coordinate(x_.at(value));
      svg +=
          fmt::format("<path d=\"M{} {}V{}\"/><text x=\"{}\" y=\"{}\" class=\"middle\">{}</text>",
                      x,
                      coordinate(kSpanTop),
                      coordinate(bottom),
                      x,
                      coordinate(bottom + 14),
                      escaped(tick_text(value, ticks.step)));
    }
    return svg + "</g>\n";
  }

  [[nodiscard]] std::string spans_of(const Lane& lane, double y) const {
    std::vector<std::string> paths(chart_.kinds.size());
    std::string told;
    const std::string height = coordinate(height_of(lane));
    struct Open {
      double begin = 0;
      double end = -1;
    };
    std::vector<Open> open(chart_.kinds.size());  // boxes of short spans that touch each other
    const auto close = [&](std::size_t kind) {
      Open& box = open[kind];
      if (box.end > box.begin) {
        paths[kind] += fmt::format("M{} {}H{}v{}H{}z",
                                   coordinate(box.begin),
                                   coordinate(y),
                                   coordinate(box.end),
                                   height,
                                   coordinate(box.begin));
      }
      box = Open();
    };
    for (const Span& span : lane.spans) {
      const auto kind = static_cast<std::size_t>(span.kind);
      const double begin = x_.at(span.begin_s / scale_.size);
      const double end = x_.at(span.end_s / scale_.size);
      if (kind >= chart_.kinds.size() || !(end > begin)) {
        continue;
      }
      if (end - begin >= kTold) {
        told += fmt::format(
            "<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" "
            "height=\"{}\"><title>{}</title></rect>",
            classes_of(kind),
            coordinate(begin),
            coordinate(y),
            coordinate(end - begin),
            height,
            escaped(span.text));
        continue;
      }
      constexpr double kTouching = 0.15;
      if (open[kind].end > open[kind].begin && begin <= open[kind].end + kTouching) {
        open[kind].end = std::max(open[kind].end, end);
      } else {
        close(kind);
        open[kind] = {begin, std::max(end, begin + kTouching)};
      }
    }
    std::string svg;
    for (std::size_t kind = 0; kind < paths.size(); ++kind) {
      close(kind);
      if (!paths[kind].empty()) {
        svg += fmt::format("<path class=\"{}\" d=\"{}\"/>", classes_of(kind), paths[kind]);
      }
    }
    return "<g class=\"spans\">" + svg + told + "</g>\n";
  }

  [[nodiscard]] std::string classes_of(std::size_t kind) const {
    const LegendEntry& entry = chart_.kinds[kind];
    return colour_class(entry.colour) + (entry.swatch == Swatch::Pale ? " pale" : "");
  }

  [[nodiscard]] std::string label() const {
    return fmt::format("{}: {} lanes over {}.",
                       chart_.title,
                       chart_.lanes.size(),
                       quantity_text((x_.high - x_.low) * scale_.size, Unit::Seconds));
  }

  const SpanChart& chart_;
  double width_;
  double height_ = 0;
  ScaledUnit scale_;
  Axis x_;
};

}  // namespace

bool is_empty(const SpanChart& chart) {
  return std::all_of(chart.lanes.begin(), chart.lanes.end(), [](const Lane& lane) {
    return std::all_of(lane.spans.begin(), lane.spans.end(), [](const Span& span) {
      return !(span.end_s > span.begin_s);
    });
  });
}

std::string span_chart_html(const SpanChart& chart) {
  return is_empty(chart) ? "" : SpanDrawing(chart, kWideSpans).html();
}

}  // namespace tessera::engine
