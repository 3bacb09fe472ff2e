// What `top` shows of a run, as the lines of a terminal.

#pragma once

#include <string>
#include <vector>

#include "engine/run_view/canvas.h"
#include "engine/run_view/run_data.h"

namespace tessera::engine {

struct TopView {
  int columns = 80;
  int lines = 24;
  ScreenStyle style;
  int first_device = 0;  // that is shown, where there is no room for all
  double quiet_s = 0;    // since anything was last written into the folder
  bool live = true;      // it is shown again and again, and keys do something
};

// At most `lines` lines of at most `columns` columns.
[[nodiscard]] std::vector<std::string> top_screen(const RunData& data, const TopView& view);

// The largest `first_device` that still fills the room there is for devices.
[[nodiscard]] int last_first_device(const RunData& data, const TopView& view);

}  // namespace tessera::engine
