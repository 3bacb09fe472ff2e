#include "engine/cli/move_report.h"

#include <fmt/format.h>

#include "engine/system/clock.h"
#include "engine/system/say.h"
#include "partitioner/base/quantities.h"

namespace tessera::engine {

namespace {

constexpr double kBetweenBars_s = 0.2;
constexpr double kBetweenLines_s = 5;

}  // namespace

MoveReport::MoveReport(ProgressStyle style) : style_(style) {}

MoveReport::~MoveReport() {
  if (bar_is_open_) {
    say("\n");
  }
}

std::string MoveReport::start_line(const MoveProgress& progress) {
  if (progress.samples == 0) {
    return "no samples move between devices\n";
  }
  const std::string there =
      progress.there_before == 0
          ? ""
          : fmt::format(", {} of them are there already", progress.there_before);
  return fmt::format("moving {} between devices{}: {}\n",
                     counted(progress.samples, "sample"),
                     there,
                     readable_bytes(progress.bytes));
}

void MoveReport::say_more(const std::string& text) {
  if (style_ != ProgressStyle::None) {
    say(text + "\n");
  }
}

void MoveReport::show(const MoveProgress& progress) {
  if (style_ == ProgressStyle::None) {
    return;
  }
  if (!begun_) {
    begun_ = true;
    started_s_ = shown_s_ = now_s();
    say(start_line(progress));
    return;
  }
  const bool last = progress.bytes_moved == progress.bytes;
  const bool bar = style_ == ProgressStyle::Bar;
  const double at_s = now_s();
  if (!last && at_s - shown_s_ < (bar ? kBetweenBars_s : kBetweenLines_s)) {
    return;
  }
  shown_s_ = at_s;
  const double taken_s = at_s - started_s_;
  const double left_s = progress.bytes_moved == 0
                            ? 0
                            : taken_s * static_cast<double>(progress.bytes - progress.bytes_moved) /
                                  static_cast<double>(progress.bytes_moved);
  const std::string line = fmt::format("moved {} of {} in {:.1f} s, {:.0f} s left",
                                       readable_bytes(progress.bytes_moved),
                                       readable_bytes(progress.bytes),
                                       taken_s,
                                       left_s);
  bar_is_open_ = bar && !last;
  say(bar ? fmt::format("\r{:60}{}", line, last ? "\n" : "") : line + "\n");
}

}  // namespace tessera::engine
