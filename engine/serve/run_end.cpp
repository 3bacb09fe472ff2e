#include "engine/serve/run_end.h"

namespace tessera::engine {

bool was_killed(const RunData& run) {
  return run.state == RunState::Interrupted &&
         (!run.info || state_named(run.info->state) == RunState::Running);
}

bool has_ended(const RunData& run) {
  return run.state != RunState::Running && run.state != RunState::Empty;
}

bool RunEnd::is_over(const RunData& run, bool news, double now_s) {
  any_news_ = any_news_ || (news && looked_);
  looked_ = true;
  news_s_ = news ? now_s : news_s_;
  const double shown_s = was_killed(run) ? kShownAfterKill_s : kShownAfterEnd_s;
  return any_news_ && has_ended(run) && now_s - news_s_ >= shown_s;
}

}  // namespace tessera::engine
