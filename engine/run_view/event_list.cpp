#include "engine/run_view/event_list.h"

#include <fmt/format.h>
#include <string_view>
#include <utility>

#include "engine/run_view/run_figures.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/text_table.h"

namespace tessera::engine {

namespace {

Ink ink_of(const RunEvent& event) {
  if (event.kind == "failure") {
    return Ink::Bad;
  }
  if (event.kind == "warning" || event.kind == "signal" || event.kind == "fault") {
    return Ink::Warn;
  }
  const bool good = event.kind == "best" || event.kind == "finish" || event.kind == "recovery";
  return good ? Ink::Good : Ink::Plain;
}

// Broken between words, where there are any; at most a few lines.
std::vector<std::string> wrapped_text(const RunEvent& event, int width) {
  constexpr std::size_t kMostLines = 3;
  std::string text = printable(event.text.empty() ? event.kind : event.text);
  if (event.rank >= 0) {
    text = fmt::format("rank {}: {}", event.rank, text);
  }
  std::vector<std::string> lines(1);
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    const std::string word(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (lines.back().empty()) {
      lines.back() = word;
    } else if (screen_width(lines.back()) + 1 + screen_width(word) <= width) {
      lines.back() += ' ' + word;
    } else if (lines.size() == kMostLines) {
      lines.back() = shortened(lines.back() + ' ' + word, static_cast<std::size_t>(width));
      break;
    } else {
      lines.push_back(word);
    }
  }
  return lines;
}

}  // namespace

void draw_events(Canvas& canvas, const CanvasBox& box, const std::vector<RunEvent>& events) {
  const int time = 8;
  const int width = std::max(box.columns - time - 1, 1);
  int free = box.lines - 1;
  bool has_checkpoint = false;
  std::vector<const RunEvent*> shown;
  for (auto event = events.rbegin(); event != events.rend(); ++event) {
    if (event->kind == "checkpoint" && std::exchange(has_checkpoint, true)) {
      continue;
    }
    free -= static_cast<int>(wrapped_text(*event, width).size());
    if (free < 0) {
      break;
    }
    shown.push_back(&*event);
  }
  int line = box.line + 1;
  for (auto event = shown.rbegin(); event != shown.rend(); ++event) {
    if (known((*event)->t_s)) {
      canvas.write_left_of(box.column + time - 1, line, duration((*event)->t_s), Ink::Faint);
    }
    for (const std::string& part : wrapped_text(**event, width)) {
      canvas.write(box.column + time, line++, part, ink_of(**event), width);
    }
  }
  if (events.empty()) {
    canvas.write(box.column + 1, line, "none", Ink::Faint);
  }
}

}  // namespace tessera::engine
