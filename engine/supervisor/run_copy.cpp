#include "engine/supervisor/run_copy.h"

#include <fstream>

#include "engine/supervisor/state_folder.h"
#include "engine/system/clock.h"

namespace tessera::engine {

namespace {

bool is_fit(const AgentLink& agent, const Roster& roster, int device) {
  return device > 0 && agent.is_ready() && roster.takes_part(device);
}

}  // namespace

void RunCopy::keep(std::deque<AgentLink>& agents, const Roster& roster) {
  constexpr double kBetween_s = 0.2;
  constexpr std::size_t kMostUnsent = std::size_t{256} << 10U;
  if (shared_ || now_s() < next_s_) {
    return;
  }
  if (device_ >= 0 && !is_fit(link(agents, device_), roster, device_)) {
    device_ = -1;
    asked_ = -1;
  }
  if (device_ < 0) {
    next_s_ = now_s() + kBetween_s;
    choose_device(agents, roster);
    return;
  }
  AgentLink& agent = link(agents, device_);
  while (agent.stream() != nullptr && agent.stream()->unsent_bytes() < kMostUnsent) {
    const auto part = source_.next();
    if (!part) {
      whole_now_ = std::exchange(fills_, false);
      next_s_ = now_s() + kBetween_s;
      return;
    }
    agent.send(*part);
  }
}

void RunCopy::choose_device(std::deque<AgentLink>& agents, const Roster& roster) {
  for (int device = 1; device < roster.size(); ++device) {
    if (asked_ >= 0 && is_fit(link(agents, asked_), roster, asked_)) {
      return;
    }
    if (is_fit(link(agents, device), roster, device)) {
      asked_ = device;
      token_ = "standby-" + new_run_number();
      std::ofstream(folder_ / token_) << '\n';
      link(agents, device).send(to_agent::Look{token_});
    }
  }
}

void RunCopy::take_look(int device, const to_supervisor::Look& look) {
  if (device != asked_ || look.file != token_) {
    return;
  }
  std::error_code error;
  std::filesystem::remove(folder_ / token_, error);
  asked_ = -1;
  shared_ = look.there;
  if (!shared_) {
    device_ = device;
    begins_ = true;
    fills_ = true;
    source_.start_anew();
  }
}

bool RunCopy::finish(std::deque<AgentLink>& agents, const Roster& roster) {
  if (device_ < 0 || link(agents, device_).is_over()) {
    return true;
  }
  next_s_ = 0;
  keep(agents, roster);
  return device_ < 0 || (next_s_ > 0 && !link(agents, device_).stream()->wants_to_write());
}

}  // namespace tessera::engine
