#include <algorithm>
#include <fmt/format.h>

#include "engine/chart/markup.h"
#include "engine/page/sections.h"
#include "engine/page/words.h"

namespace tessera::engine {

namespace {

std::string row_html(const RunEvent& event) {
  return fmt::format(
      "<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"text\">{}</td><td "
      "class=\"text\">{}{}</td></tr>\n",
      escaped(duration_text(event.t_s)),
      event.step > 0 ? fmt::format("{}", event.step) : "",
      escaped(event.kind),
      event.rank >= 0 ? fmt::format("rank {}: ", event.rank) : "",
      escaped(event.text));
}

}  // namespace

PageSection events_section(const RunData& run) {
  PageSection section{.id = "events", .title = "Events"};
  if (run.events.empty()) {
    section.missing = "Events: events.jsonl is missing or empty.";
    return section;
  }
  // If there are many, what happens every epoch is left out, and then what is oldest.
  constexpr std::size_t kMost = 40;
  std::vector<RunEvent> events = run.events;
  const auto time_of = [](const RunEvent& event) { return known(event.t_s) ? event.t_s : -1; };
  std::stable_sort(events.begin(), events.end(), [&](const RunEvent& a, const RunEvent& b) {
    return time_of(a) < time_of(b);
  });
  if (events.size() > kMost) {
    std::erase_if(events, is_routine);
  }
  if (events.size() > kMost) {
    events.erase(events.begin(), events.end() - kMost);
  }
  std::string rows;
  for (const RunEvent& event : events) {
    rows += row_html(event);
  }
  section.html =
      "<div class=\"scroll\"><table id=\"event-table\"><thead><tr><th scope=\"col\">after</th><th "
      "scope=\"col\">step</th><th scope=\"col\" class=\"text\">event</th><th scope=\"col\" "
      "class=\"text\"></th></tr></thead>\n<tbody>\n" +
      rows + "</tbody></table></div>\n";
  const Index all = std::ssize(run.events) + run.dropped_events;
  if (std::ssize(events) < all) {
    section.html += fmt::format(
        "<p class=\"note\">{} of {} events; events.jsonl has all.</p>\n", events.size(), all);
  }
  return section;
}

}  // namespace tessera::engine
