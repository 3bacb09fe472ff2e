#include "engine/run_log/event_log.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "engine/files/json_text.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

constexpr std::chrono::seconds kPatience{1};

// Results of training, which steps that are taken once more have again.
bool is_checkpoint(const nlohmann::json& event) {
  const auto kind = event.find("kind");
  return kind != event.end() && *kind == "checkpoint";
}

bool is_test(const nlohmann::json& event) {
  const auto kind = event.find("kind");
  return kind != event.end() && (*kind == "best" || *kind == "epoch");
}

bool has_event(const std::filesystem::path& path,
               Index step,
               bool (*is_wanted)(const nlohmann::json& event)) {
  bool found = false;
  for_each_json_line(path, [&](const std::string& line) {
    const auto event = nlohmann::json::parse(line, nullptr, false);
    found = found || (event.is_object() && event.contains("step") && event["step"] == step &&
                      is_wanted(event));
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
      [this](const nlohmann::json& line) {
        const auto t_s = line.find("t_s");
        last_s_ = t_s != line.end() && t_s->is_number() ? t_s->get<double>() : last_s_;
      },
      resumed_step == 0
          ? std::function<bool(const nlohmann::json&, Index)>()
          : [resumed_step, owes_test](const nlohmann::json& event, Index step) {
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
  using Json = nlohmann::ordered_json;
  // A run that goes on counts time from its last lines elsewhere, which may be earlier.
  const double t_s = clock_ ? clock_->t_s() - details.ago_s : 0;
  last_s_ = std::max(last_s_, std::round(1e3 * t_s) / 1e3);
  Json event{{"t_s", last_s_},
             {"step", step.value_or(step_)},
             {"rank", rank < 0 ? Json() : Json(rank)},
             {"kind", kind},
             {"text", text}};
  if (!details.device.empty()) {
    event["device"] = details.device;
  }
  if (details.cost) {
    event["lost_s"] = std::round(1e3 * details.cost->lost_s) / 1e3;
    event["repeated_steps"] = details.cost->repeated_steps;
  }
  const std::string line = event.dump(-1, ' ', false, Json::error_handler_t::replace);
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
