#include "engine/run_log/progress.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "engine/system/clock.h"
#include "engine/system/say.h"
#include "partitioner/base/quantities.h"
#include "partitioner/base/training_figures.h"

namespace tessera::engine {

namespace {

constexpr std::size_t kSpeedSteps = 20;  // of which a speed is shown

}  // namespace

Progress::Progress(ProgressStyle style, Index first_step, Index last_step, int columns)
    : style_(style),
      columns_(static_cast<std::size_t>(std::max(columns, 2)) - 1),
      first_step_(first_step),
      last_step_(last_step),
      started_s_(now_s()) {}

// What is said next begins a line of its own.
Progress::~Progress() {
  if (bar_is_open_) {
    say("\n");
  }
}

std::string Progress::time_left(Index step) const {
  const double per_step = (now_s() - started_s_) / static_cast<double>(step - first_step_);
  const auto left =
      static_cast<Index>(std::llround(per_step * static_cast<double>(last_step_ - step)));
  return left >= 3600 ? fmt::format("{}:{:02}:{:02}", left / 3600, left / 60 % 60, left % 60)
                      : fmt::format("{}:{:02}", left / 60, left % 60);
}

// Of the latest steps: the first ones of a run are slower than all others.
std::string Progress::speed() const {
  Seen sum;
  for (const Seen& step : latest_) {
    sum.images += step.images;
    sum.seconds += step.seconds;
  }
  return fmt::format("{:.0f} images/s ({})",
                     static_cast<double>(sum.images) / std::max(sum.seconds, 1e-9),
                     counted(std::ssize(latest_), "step"));
}

void Progress::step(Index step, const StepResult& result, Index images) {
  if (style_ == ProgressStyle::None) {
    return;
  }
  latest_.push_back({images, result.times.step_s});
  if (latest_.size() > kSpeedSteps) {
    latest_.pop_front();
  }
  // Only where it is much: else pictures are there before they are needed.
  constexpr double kMuch = 0.2;
  const double waiting = result.times.load_s / std::max(result.times.step_s, 1e-9);
  const std::string line = fmt::format(
      "step {:>{}}/{}  loss {:.4f}  lr {:.4g}  {}  {} left{}",
      step,
      fmt::formatted_size("{}", last_step_),
      last_step_,
      result.loss,
      result.learning_rate,
      speed(),
      time_left(step),
      waiting < kMuch ? "" : fmt::format("  waiting for pictures {:.0f} %", 100 * waiting));
  if (style_ == ProgressStyle::Line) {
    say(line + "\n");
  } else if (now_s() - shown_s_ > 0.2 || step == last_step_) {
    constexpr Index kWidth = 12;
    const Index done = kWidth * step / last_step_;
    shown_s_ = now_s();
    bar_is_open_ = step < last_step_;
    const std::string bar = fmt::format("[{:=<{}}{: <{}}] ", "", done, "", kWidth - done);
    const bool fits = bar.size() + line.size() <= columns_;
    say(fmt::format(
        "\r{:{}.{}}{}", (fits ? bar : "") + line, columns_, columns_, bar_is_open_ ? "" : "\n"));
  }
}

void Progress::evaluation(Index step, double epoch, const EvaluationResult& result) {
  if (style_ == ProgressStyle::None) {
    return;
  }
  say(fmt::format("{}epoch {} ({}): test {}, test loss {:.4f}, {} pictures\n",
                  bar_is_open_ ? fmt::format("\r{:{}}\r", "", columns_) : "",
                  epoch_number(step, epoch),
                  counted(step, "step"),
                  described(result.score()),
                  result.loss,
                  result.pictures));
  bar_is_open_ = false;
}

}  // namespace tessera::engine
