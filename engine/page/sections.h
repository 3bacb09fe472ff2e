// The parts of a run's page, each made of what the folder knows.

#pragma once

#include <string>

#include "engine/run_view/run_data.h"

namespace tessera::engine {

struct PageSection {
  std::string id = {};
  std::string title = {};
  std::string html = {};     // empty: there is nothing to show
  std::string missing = {};  // a sentence: what is not shown and why; empty: all is there
};

// Which of a run's tests: there is nothing to show of the best where it is the last.
enum class Test { Last, Best };

[[nodiscard]] PageSection learning_section(const RunData& run);
[[nodiscard]] PageSection classes_section(const RunData& run,
                                          Test test = Test::Last);  // of a classifier
[[nodiscard]] PageSection detection_section(const RunData& run,
                                            Test test = Test::Last);  // of a detector
[[nodiscard]] PageSection pictures_section(const RunData& run);
[[nodiscard]] PageSection tiles_section(const RunData& run);
[[nodiscard]] PageSection step_time_section(const RunData& run);
[[nodiscard]] PageSection timeline_section(const RunData& run);
[[nodiscard]] PageSection memory_section(const RunData& run);
[[nodiscard]] PageSection devices_section(const RunData& run);
[[nodiscard]] PageSection energy_section(const RunData& run);
[[nodiscard]] PageSection events_section(const RunData& run);

// The head of the page: the figures that a reader looks for first, and what was trained.
[[nodiscard]] std::string key_figures_html(const RunData& run);
[[nodiscard]] std::string facts_html(const RunData& run);

}  // namespace tessera::engine
