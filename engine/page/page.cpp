#include "engine/page/page.h"

#include <array>
#include <fmt/format.h>

#include "engine/chart/markup.h"
#include "engine/chart/style.h"
#include "engine/chart/tile_chart.h"
#include "engine/page/page_style.h"
#include "engine/page/sections.h"
#include "engine/page/words.h"
#include "engine/run_view/run_figures.h"
#include "partitioner/base/quantities.h"

namespace tessera::engine {

namespace {

constexpr std::size_t kSections = 11;

std::array<PageSection, kSections> sections_of(const RunData& run) {
  const auto test_section = run.finds_objects ? detection_section : classes_section;
  return {learning_section(run),
          test_section(run, Test::Last),
          test_section(run, Test::Best),
          pictures_section(run),
          tiles_section(run),
          step_time_section(run),
          timeline_section(run),
          memory_section(run),
          devices_section(run),
          energy_section(run),
          events_section(run)};
}

// "running, as of 2026-11-26 07:10 UTC"
std::string state_text(const RunData& run, const PageOptions& options) {
  std::string text = name_of(run.state);
  if (run.state == RunState::Running && !options.as_of.empty()) {
    text += ", as of " + options.as_of;
  }
  return text;
}

std::string header_html(const RunData& run, const PageOptions& options) {
  std::string html = "<header>\n<h1>" + escaped(title_of(run, options)) + "</h1>\n";
  html += fmt::format(
      "<p class=\"state {}\">{}</p>\n", name_of(run.state), escaped(state_text(run, options)));
  std::string line = run.reason;
  if (const int ranks = run.ranks(); line.empty() && ranks > 0) {
    line = counted(ranks, "device");
  }
  for (const std::string& text : {line, faults_text(run.faults)}) {
    html += text.empty() ? "" : "<p>" + escaped(text) + "</p>\n";
  }
  return html + "</header>\n";
}

// What is not shown, and why.
std::string missing_html(const RunData& run, const std::array<PageSection, kSections>& sections) {
  std::string items;
  for (const PageSection& section : sections) {
    items += section.missing.empty() ? "" : "<li>" + escaped(section.missing) + "</li>\n";
  }
  for (const auto& [file, lines] : run.damaged) {
    items +=
        fmt::format("<li>{}: {} could not be read.</li>\n", escaped(file), counted(lines, "line"));
  }
  return items.empty() ? ""
                       : "<section id=\"missing\">\n<h2>Not shown</h2>\n<ul class=\"missing\">\n" +
                             items + "</ul>\n</section>\n";
}

// Neither the page nor anything that might have got into it may ask for a thing.
std::string content_policy() {
  return fmt::format(
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'; img-src data:; script-src '{}'\">\n",
      chart_script_hash());
}

}  // namespace

std::string title_of(const RunData& run, const PageOptions& options) {
  if (!options.title.empty()) {
    return options.title;
  }
  const std::string model = run.info ? stem_of(run.info->model) : "";
  return model.empty() ? "A training run" : model;
}

std::vector<std::string> page_parts(const RunData& run, const PageOptions& options) {
  const std::array<PageSection, kSections> sections = sections_of(run);
  std::vector<std::string> parts{header_html(run, options), key_figures_html(run), facts_html(run)};
  for (const PageSection& section : sections) {
    parts.push_back(section.html.empty()
                        ? ""
                        : fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n{}</section>\n",
                                      section.id,
                                      section.title,
                                      section.html));
  }
  parts.push_back(missing_html(run, sections));
  return parts;
}

std::string page_start(const std::string& title, const std::string& head) {
  std::string html = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n" +
                     head +
                     "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                     "<link rel=\"icon\" href=\"data:,\">\n<title>" +
                     escaped(title) + "</title>\n<style>\n";
  html += chart_style();
  html += page_style();
  return html + "</style>\n</head>\n<body>\n" + hatch_pattern();
}

std::string run_page(const RunData& run, const PageOptions& options) {
  std::string html = page_start(title_of(run, options), content_policy());
  for (const std::string& part : page_parts(run, options)) {
    html += part;
  }
  html += "<footer>Made by tessera report from " + escaped(run.folder.string()) +
          (options.as_of.empty() ? "" : ", " + escaped(options.as_of)) + ".</footer>\n<script>";
  html += chart_script();
  return html + "</script>\n</body>\n</html>\n";
}

}  // namespace tessera::engine
