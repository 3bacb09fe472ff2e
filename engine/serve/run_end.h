// When a server that shows a run has nothing left to do: some time after the run has ended, so that
// those who look at it have seen how. A run that had ended before is shown for as long as somebody
// wants.

#pragma once

#include "engine/run_view/run_data.h"

namespace tessera::engine {

inline constexpr double kShownAfterEnd_s = 60;
// Of a run whose processes are gone: `tessera run` may start others that go on.
inline constexpr double kShownAfterKill_s = 600;

class RunEnd {
 public:
  // After each look: whether anything was new. True from when the server may end.
  [[nodiscard]] bool is_over(const RunData& run, bool news, double now_s);

 private:
  bool looked_ = false;
  bool any_news_ = false;  // after the first look
  double news_s_ = 0;
};

// Whether a run says that it goes on, but no process has its folder.
[[nodiscard]] bool was_killed(const RunData& run);
[[nodiscard]] bool has_ended(const RunData& run);  // by itself, or by being killed

}  // namespace tessera::engine
