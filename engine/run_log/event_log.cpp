#include "engine/run_log/event_log.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/files/json_text.h"
#include "engine/run_files/run_event.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

constexpr std::chrono::seconds kPatience{1};

bool has_event(const std::filesystem::path& path,
               Index step,
               bool (*is_wanted)(const RunEvent& event)) {
  bool found = false;
  for_each_json_line(path, [&](const std::string& line) {
    const auto event = run_event(nlohmann::ordered_json::parse(line, nullptr, false));
    found = found || (event && event->step == step && is_wanted(*event));
  });
  return found;
}

}  // namespace

bool has_checkpoint_event(const std::filesystem::path& path, Index step) {
  return has_event(path, step, is_checkpoint);
}

bool has_test_event(const std::filesystem::path& path, Index step) {
  return has_event(path, step, is_test);
}

std::optional<std::string> EventLog::open(const std::filesystem::path& path,
                                          Index resumed_step,
                                          const RunClock& clock,
                                          bool owes_test) {
  const std::lock_guard lock(mutex_);
  lines_.emplace(
      path,
      resumed_step,
      [this](const nlohmann::ordered_json& line) {
        const double t_s = run_event(line).value_or(RunEvent()).t_s;
        last_s_ = known(t_s) ? t_s : last_s_;
      },
      resumed_step == 0
          ? JsonLines::Stays()
          : [resumed_step, owes_test](const nlohmann::ordered_json& line, Index step) {
              const RunEvent event = run_event(line).value_or(RunEvent());
              return is_test(event) ? step < resumed_step || (step == resumed_step && !owes_test)
                     : is_checkpoint(event) ? step <= resumed_step
                                            : true;
            });
  clock_ = clock;
  step_ = resumed_step;
  if (!early_.empty()) {
    early_.pop_back();
    lines_->add_line(early_);
    early_.clear();
  }
  return lines_->damage();
}

void EventLog::add(const std::string& kind,
                   const std::string& text,
                   int rank,
                   const std::optional<Index>& step,
                   const EventDetails& details) {
  const std::unique_lock lock(mutex_, kPatience);
  if (!lock.owns_lock()) {
    return;
  }
  // A run that goes on counts time from its last lines elsewhere, which may be earlier.
  const double t_s = clock_ ? clock_->t_s() - details.ago_s : 0;
  last_s_ = std::max(last_s_, std::round(1e3 * t_s) / 1e3);
  RunEvent event{.t_s = last_s_,
                 .step = step.value_or(step_),
                 .rank = rank,
                 .kind = kind,
                 .text = text,
                 .device = details.device};
  if (details.cost) {
    event.lost_s = details.cost->lost_s;
    event.repeated_steps = details.cost->repeated_steps;
  }
  const std::string line = line_of(event);
  if (!lines_) {
    early_ += line + "\n";
    return;
  }
  try {
    lines_->add_line(line);
  } catch (const InputError&) {  // the metrics cannot be written either, and say so
  }
}

void EventLog::sync() {
  const std::unique_lock lock(mutex_, kPatience);
  if (lock.owns_lock() && lines_) {
    try {
      lines_->sync();
    } catch (const InputError&) {
    }
  }
}

void EventLog::copy_to(const std::filesystem::path& path) {
  const std::unique_lock lock(mutex_, kPatience);
  if (lock.owns_lock() && lines_) {
    try {
      lines_->copy_to(path);
    } catch (const InputError&) {
    }
  }
}

}  // namespace tessera::engine
