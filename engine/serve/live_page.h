// The report's page as it is served while a run goes on: the same parts, each an element that a
// script replaces, and a line about how old they are.

#pragma once

#include <string>
#include <string_view>

#include "engine/run_view/run_data.h"

namespace tessera::engine {

// Up to the first part, and after the last one. `base` is the path that the page's script lies in,
// with "/" at both ends.
[[nodiscard]] std::string live_page_start();
[[nodiscard]] std::string live_page_end(const std::string& base, const std::string& folder);

// What the script asks for beside parts.
struct LiveState {
  std::string mark;  // of the parts
  RunState run = RunState::Empty;
  bool killed = false;  // nobody works on the run, but it has not ended
  double age_s = 0;     // since the run's folder was read
  double quiet_s = 0;   // since anything was new in it
};
[[nodiscard]] std::string live_state_html(const LiveState& state);

// JavaScript. Asks for what is new, every two seconds of a page that is looked at.
[[nodiscard]] std::string_view live_script();

}  // namespace tessera::engine
